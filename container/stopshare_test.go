package container

import (
	"testing"
	"time"
)

// F-N32
func TestShortStopIsSharedBetweenHandlersAndGrace(t *testing.T) {
	const s = time.Second
	for _, c := range []struct{ left, drain, grace, want time.Duration }{
		{22 * s, 20 * s, 2 * s, 20 * s},
		{time.Minute, 20 * s, 2 * s, 20 * s},
		{11 * s, 20 * s, 2 * s, 10 * s},
		{2500 * time.Millisecond, 20 * s, 2 * s, 2 * s},
		{400 * time.Millisecond, 20 * s, 2 * s, 200 * time.Millisecond},
		{10 * s, 20 * s, 0, 10 * s},
		{10 * s, 10 * s, 10 * s, 5 * s},
		{0, 20 * s, 2 * s, 0},
		{-s, 20 * s, 2 * s, 0},
	} {
		if got := handlersShare(c.left, c.drain, c.grace); got != c.want {
			t.Errorf("%v of %v and %v: %v for the handlers, want %v", c.left, c.drain, c.grace, got, c.want)
		}
	}
}
