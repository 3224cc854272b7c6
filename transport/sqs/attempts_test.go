package sqs

import (
	"math/rand/v2"
	"testing"
)

// F-N03: what is known of a message ends when it has left the queue and come back.
func TestAMessageThatComesBackStartsAtOne(t *testing.T) {
	a := newAttempts()
	a.next("m", 1, 5) // four failures here at one receive
	if n, _ := a.attempt("m", 2); n != 5 {
		t.Fatalf("attempt %d, want 5", n)
	}
	if n, _ := a.attempt("m", 1); n != 1 {
		t.Errorf("moved away and back it is attempt %d, want 1", n)
	}
	a.next("m", 1, 2)
	if n, _ := a.attempt("m", 2); n != 2 {
		t.Errorf("after its first failure there it is attempt %d, want 2", n)
	}
}

// F-N15: receives whose outcome no one here knows use up no attempt, five of them.
func TestUnknownReceivesAreNoFailures(t *testing.T) {
	for _, tc := range []struct{ receives, want int }{{1, 1}, {2, 1}, {6, 1}, {7, 2}, {10, 5}, {1000, 995}} {
		if n, last := newAttempts().attempt("m", tc.receives); n != tc.want || last {
			t.Errorf("at receive %d it is attempt %d, want %d; the last: %v", tc.receives, n, tc.want, last)
		}
	}
	if _, last := newAttempts().attempt("m", lastReceive+1); !last {
		t.Error("a message that was received a thousand times goes on")
	}
	a := newAttempts()
	a.next("m", 1, 2)                      // one failure here
	if n, _ := a.attempt("m", 5); n != 2 { // three receives elsewhere
		t.Errorf("attempt %d, want 2", n)
	}
	a.next("m", 5, 3)                         // another failure here
	if n, _ := a.attempt("m", 10); n != 3+2 { // four elsewhere, two of which are free
		t.Errorf("attempt %d, want 5", n)
	}
	a.next("m", 10, 5) // returned by a stop
	if n, _ := a.attempt("m", 11); n != 5 {
		t.Errorf("attempt %d, want 5", n)
	}
}

// Whatever several processes do to a message: up to five returns count as no failure in
// any process, and however the failures are spread, a message
// that always fails is handled at most MaxAttempts + 5 times.
func TestAttemptsAreBounded(t *testing.T) {
	const max = 5
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 4))
		processes := make([]*attempts, 1+r.IntN(5))
		for i := range processes {
			processes[i] = newAttempts()
		}
		runs, returns := 0, 0
		for receives := 1; ; receives++ {
			p := processes[r.IntN(len(processes))]
			n, _ := p.attempt("m", receives)
			if n > 1+runs {
				t.Fatalf("seed %d: attempt %d after %d runs and %d returns", seed, n, runs, returns)
			}
			if returns == 0 && len(processes) == 1 && n != runs+1 {
				t.Fatalf("seed %d: alone, attempt %d after %d runs", seed, n, runs)
			}
			if r.IntN(4) == 0 && returns < unknownReceives { // an orderly stop, or a crash
				returns++
				if r.IntN(2) == 0 {
					p.next("m", receives, n)
				}
				continue
			}
			if runs++; n >= max {
				break
			}
			p.next("m", receives, n+1)
		}
		if runs > max+unknownReceives || runs < max {
			t.Fatalf("seed %d: %d processes, %d returns: handled %d times", seed, len(processes), returns, runs)
		}
	}
}
