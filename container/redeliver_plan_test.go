package container

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

// The table of routes: where a delivery waits for its next attempt.
func TestRoutes(t *testing.T) {
	const s = time.Second
	delays := longshore.Capabilities{Delay: true, Attempts: true}
	returns := longshore.Capabilities{Delay: true, Attempts: true, CountsReturns: true}
	for _, tc := range []struct {
		name  string
		c     redelivery
		to    route
		held  bool
		delay time.Duration // 0: as it was
	}{
		{"nothing holds", redelivery{}, routePark, false, 0},
		{"the broker holds", redelivery{caps: delays}, routeBroker, true, 0},
		{"too short for a journey", redelivery{caps: delays, delay: s / 2}, routePark, true, 0},
		{"an order", redelivery{caps: delays, ordered: true}, routePark, false, 0},
		{"attempts would be lost", redelivery{caps: longshore.Capabilities{Delay: true}}, routePark, true, 0},
		{"a release has none to lose", redelivery{caps: longshore.Capabilities{Delay: true}, verdict: longshore.VerdictRelease}, routeBroker, true, 0},
		{"the broker could not", redelivery{caps: delays, standing: standing{}, cannot: true}, routePark, false, 0},
		{"a release where returns count", redelivery{caps: returns, verdict: longshore.VerdictRelease}, routePark, false, 0},
		{"a long one", redelivery{caps: returns, verdict: longshore.VerdictRelease, delay: 2 * time.Minute}, routeBroker, true, 0},
		{"a retry where returns count", redelivery{caps: returns}, routeBroker, true, 0},

		{"a stop", redelivery{standing: standing{leaves: true}}, routeBroker, false, 0},
		{"a stop with an order", redelivery{caps: delays, ordered: true, standing: standing{leaves: true}}, routeBroker, false, 0},
		{"a stop where returns count", redelivery{caps: returns, verdict: longshore.VerdictRelease, standing: standing{leaves: true}}, routeBroker, true, 0},
		{"a stop though the broker could not", redelivery{caps: delays, standing: standing{leaves: true}, cannot: true}, routeBroker, true, 0},
		{"one before it is lost", redelivery{ordered: true, standing: standing{torn: true}}, routeBroker, false, 0},

		{"no room, the broker holds", redelivery{caps: delays, delay: s / 2, standing: standing{full: true}, giveUp: true}, routeBroker, true, 0},
		{"no room, though the broker could not", redelivery{caps: delays, standing: standing{full: true}, cannot: true, giveUp: true}, routeBroker, true, 0},
		{"no room", redelivery{standing: standing{full: true}, giveUp: true}, routeDeadLetter, false, 0},
		{"no room in an outage", redelivery{standing: standing{full: true, outage: true}, giveUp: true}, routePark, false, 0},
		{"no room and no place", redelivery{standing: standing{full: true}}, routePark, false, 0},
		{"no room for a release", redelivery{verdict: longshore.VerdictRelease, standing: standing{full: true}, giveUp: true}, routePark, false, 0},

		{"longer than the broker holds", redelivery{caps: longshore.Capabilities{Delay: true, Attempts: true, MaxDelay: 5 * s}}, routeBroker, true, 5 * s},
		{"longer than the lease", redelivery{caps: longshore.Capabilities{Lease: 8 * s}}, routePark, false, 4 * s},
		{"cut below what is worth a journey", redelivery{caps: longshore.Capabilities{Delay: true, Attempts: true, MaxDelay: s / 2}}, routePark, true, s / 2},
	} {
		c := tc.c
		if c.verdict == longshore.VerdictNone {
			c.verdict = longshore.VerdictRetry
		}
		if c.delay == 0 {
			c.delay = 10 * s
		}
		want := tc.delay
		if want == 0 {
			want = c.delay
		}
		if to, held, delay := c.plan(); to != tc.to || held != tc.held || delay != want {
			t.Errorf("%s: route %d, held %t, %v; want %d, %t, %v", tc.name, to, held, delay, tc.to, tc.held, want)
		}
	}
}

// Whatever the facts are: what leaves goes to the broker, only a retry is given up early
// and only where there is a place and no room, and no delay becomes longer.
func TestRoutesAreSound(t *testing.T) {
	for i := range 1 << 10 {
		bit := func(n int) bool { return i>>n&1 == 1 }
		c := redelivery{standing: standing{leaves: bit(0), torn: bit(1), full: bit(2), outage: bit(3)}, ordered: bit(4), cannot: bit(5), giveUp: bit(6),
			caps:    longshore.Capabilities{Delay: bit(7), CountsReturns: bit(8), Attempts: i%3 == 0, MaxDelay: time.Duration(i%5) * time.Second},
			verdict: longshore.VerdictRetry, delay: 3 * time.Second}
		if bit(9) {
			c.verdict = longshore.VerdictRelease
		}
		to, held, delay := c.plan()
		name := fmt.Sprintf("%+v: route %d, held %t, %v", c, to, held, delay)
		switch {
		case (c.leaves || c.torn) && to != routeBroker:
			t.Errorf("%s: has to go back", name)
		case to == routeDeadLetter && (!c.giveUp || !c.full || c.outage || c.verdict != longshore.VerdictRetry):
			t.Errorf("%s: is given up without a reason", name)
		case delay > c.delay || delay <= 0:
			t.Errorf("%s: is not the delay", name)
		case held && (c.ordered || !c.caps.Delay):
			t.Errorf("%s: the broker cannot hold it in order", name)
		}
	}
}

// A full parking space is reported once, its end when a tenth is free, and then again.
func TestParkingIsReportedOnce(t *testing.T) {
	var p parking
	for i, step := range []struct {
		full bool
		n    int
		want EventKind
	}{{false, 9, ""}, {true, 10, EventParkingFull}, {true, 10, ""}, {false, 9, ""}, {true, 10, ""}, {false, 8, EventParkingFree}, {true, 10, EventParkingFull}} {
		if got := p.note(step.full, step.n, 10); got != step.want {
			t.Errorf("step %d: %q", i, got)
		}
	}
}
