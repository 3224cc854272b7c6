package sqs

import "testing"

// F-N03: what is known of a message ends when it has left the queue and come back.
func TestAMessageThatComesBackStartsAtOne(t *testing.T) {
	r := newReturns()
	r.next("m", 1, 5) // four failures here at one receive
	if n := r.attempt("m", 2); n != 5 {
		t.Fatalf("attempt %d, want 5", n)
	}
	for receives, want := range []int{1: 1, 2: 2} {
		if receives > 0 {
			if n := r.attempt("m", receives); n != want {
				t.Errorf("moved away and back, at receive %d it is attempt %d, want %d", receives, n, want)
			}
		}
	}
}
