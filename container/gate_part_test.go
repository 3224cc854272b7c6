package container

import (
	"math"
	"testing"
)

// What a gate lets start decides how much is held.
func TestGateWindow(t *testing.T) {
	for _, tc := range []struct {
		permits        int
		rate           float64
		batch, running int
		want           int
	}{
		{-1, -1, 0, 5, math.MaxInt32},
		{0, -1, 0, 0, 0},
		{3, -1, 0, 0, 6},
		{100, -1, 0, 0, 100 + minLookahead},
		{3, -1, 10, 0, 60},
		{-1, 0, 0, 2, 2},
		{-1, 0.5, 0, 2, 3},
		{-1, 7, 10, 2, 72},
		{3, 2, 0, 1, 3},
		{maxWorkers + 1, -1, 0, 0, math.MaxInt32},
	} {
		l := gateLimits{true, tc.permits, tc.rate}
		if got := l.window(tc.batch, tc.running); got != tc.want {
			t.Errorf("%d permits, rate %v, batches of %d, %d running: %d, want %d", tc.permits, tc.rate, tc.batch, tc.running, got, tc.want)
		}
		if l.holdsAll() != (tc.permits == 0 || tc.rate == 0) {
			t.Errorf("%+v: holdsAll %v", l, l.holdsAll())
		}
	}
}

func TestGatekeeperWithoutAGateLimitsNothing(t *testing.T) {
	g := gatekeeper{opened: func() {}}
	if !g.admit(&item{}) || g.room(7, 3, 2) != 7 || g.narrow(9, 1) != 9 {
		t.Error("something is limited")
	}
	g.release(&item{})
	g.watch()()
}
