package amqp

import "testing"

// Every combination of what decides, against the rules as sentences.
func TestWayOfAReturn(t *testing.T) {
	for bits := range 1 << 7 {
		is := func(n int) bool { return bits&(1<<n) != 0 }
		x := returning{delayed: is(0), stream: is(1), exhausted: is(2), keeps: is(3), leaving: is(4), shows: is(5)}
		r := returnRules{ordered: is(6)}
		got := r.way(x)
		switch {
		case x.delayed && got != returnByCopy:
			t.Errorf("%+v: a delayed message waits as a copy, not %d", x, got)
		case !x.delayed && x.stream && got != returnByRereading:
			t.Errorf("%+v: a stream sends nothing again by itself: %d", x, got)
		case x.delayed || x.stream:
		case x.exhausted && got != returnByCopy:
			t.Errorf("%+v: the broker would give it up: %d", x, got)
		case x.exhausted:
		case (got == returnByClosing) != (x.keeps && x.leaving):
			t.Errorf("%+v: with the channel only at the end, and where places are kept: %d", x, got)
		case got == returnByClosing:
		case (got == returnByNack) != (x.shows || r.ordered && x.leaving):
			t.Errorf("%+v, ordered %v: by nack where the attempt shows or the place counts more: %d", x, r.ordered, got)
		}
	}
}
