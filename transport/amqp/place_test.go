package amqp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever the order of settling, a reader goes on at the lowest offset that is not
// done, and nothing that was done above it is handed out again.
func TestPlaceInAStream(t *testing.T) {
	for range 200 {
		p, done, n := newPlace(), map[int64]bool{}, int64(rand.IntN(60))
		first := int64(rand.IntN(1000))
		for _, i := range rand.Perm(int(n)) { // consumers' pumps may overtake each other
			if !p.arrive(first + int64(i)) {
				t.Fatal("a new one passes for done")
			}
		}
		for i := range n {
			if rand.IntN(2) == 0 {
				done[first+i] = true
			}
		}
		want := first + n
		for at := first; at < first+n; at++ {
			if !done[at] {
				want = at
				break
			}
		}
		for at := range done { // in any order
			p.settle(at)
		}
		if n == 0 {
			continue
		}
		if got := p.offset("first"); got != want {
			t.Fatalf("goes on at %v, want %d", got, want)
		}
		for at := want; at < first+n; at++ {
			if p.arrive(at) == done[at] {
				t.Fatalf("offset %d: done is %v", at, done[at])
			}
		}
	}
}

// A hole that stays open for long does not let what is remembered grow without end, and
// what is done below the hole is forgotten.
func TestPlaceStaysSmall(t *testing.T) {
	p := newPlace()
	p.arrive(0)
	for at := range int64(3 * maxAhead) {
		p.arrive(at + 1)
		p.settle(at + 1)
	}
	if len(p.done) > maxAhead || p.next() != 0 || len(p.open) != 1 {
		t.Errorf("%d done, %d open, next %d", len(p.done), len(p.open), p.next())
	}
	p.settle(0)
	if len(p.done) > 0 || p.offset(nil) != int64(3*maxAhead+1) {
		t.Errorf("%d done, on at %v", len(p.done), p.offset(nil))
	}
}

func TestPlaceBeforeAnythingCame(t *testing.T) {
	for _, configured := range []any{nil, "next"} {
		p := newPlace()
		if got := p.offset(configured); got != configured {
			t.Errorf("the first opening begins at %v", got)
		}
		if got := p.offset(configured); got != p.since {
			t.Errorf("the second one begins at %v", got)
		}
	}
	for _, configured := range []any{"first", "last", int64(7)} {
		p := newPlace()
		if got := []any{p.offset(configured), p.offset(configured)}; !slices.Equal(got, []any{configured, configured}) {
			t.Errorf("%v: begins at %v", configured, got)
		}
	}
}

// What retention has removed does not come again, and is not waited for.
func TestPlaceThatRetentionOvertakes(t *testing.T) {
	src := &places{}
	p := src.take("q")
	for at := range int64(5) {
		p.arrive(at)
	}
	p.settle(4)
	src.leave("q", p)
	p = src.take("q")
	if !p.arrive(2) || p.arrive(4) || p.next() != 2 {
		t.Errorf("goes on at %d, want 2", p.next())
	}
	p.settle(2)
	if p.next() != 3 {
		t.Errorf("goes on at %d, want 3", p.next())
	}
}
