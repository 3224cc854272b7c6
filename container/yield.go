package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// A hold leaves some consumers in their place (Capabilities.KeepsPlace): cancelled, the
// single active one would hand its role on, a member of a group its partitions. They
// are paused, and what was received waits here. That has its time where the broker
// takes back what is not settled: before it does, all is given back by us, in order,
// and the consumer leaves after all. The same goes for an operator's pause.

// stay is when to look again whether a consumer that is held or paused may keep its place.
// Only the supervisor's goroutine uses it.
type stay struct {
	timer longshore.Timer // nil: it never had to look again
}

// lookIn arms the timer.
func (s *stay) lookIn(clock longshore.Clock, d time.Duration, look func()) {
	s.end()
	s.timer = clock.AfterFunc(d, look)
}

// end stops the timer.
func (s *stay) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// stayFor decides about a consumer whose oldest waiting delivery came at since: when to
// look again, or 0: its place is given up now. That has to wait until nothing of ours
// runs any more.
func stayFor(now, since time.Time, patience time.Duration, busy bool) time.Duration {
	left := since.Add(patience).Sub(now)
	switch {
	case left > 0:
		return left
	case busy:
		return patience / 24
	}
	return 0
}

// inPlace says whether a hold leaves the consumer in its place.
func (v *supervisor) inPlace(g *generation) bool {
	return v.axes.Holds.Has(state.Middleware) && g.caps.KeepsPlace
}

// yieldWhenDue gives the consumer's place up if what waits here would soon be taken
// back, and else looks again when it would.
func (v *supervisor) yieldWhenDue() {
	g, now := v.sub.gen, v.s.clock.Now() // only the supervisor changes gen
	empty := false
	if g != nil {
		b, ok := g.c.(transport.Bufferer)
		empty = ok && b.Buffered() == 0
	}
	var out []*dispatch.Item[item]
	yields := false
	v.locked(func() {
		v.pending.stay = false
		if g == nil || g.isDown() || g.patience() <= 0 || !v.axes.Holds.Has(state.Operator) && !v.inPlace(g) {
			return
		}
		if empty {
			g.fresh = now
		}
		busy := v.held.sched.Active() > 0 || v.held.moves.on || v.held.sched.Waiting() > 0
		if again := stayFor(now, v.oldest(g), g.patience(), busy); again > 0 {
			v.stay.lookIn(v.s.clock, again, v.stayOver)
			return
		}
		yields = true
		out = v.held.sched.TakeWaiting() // before anything can start it
		g.forward(stageCanceled)
		g.interrupt()
		v.sub.leave()
		v.axes.Sub = state.Yielded
	})
	if yields {
		v.yield(g, now.Add(v.s.grace), out)
	}
}

// stayOver lets the supervisor look.
func (v *supervisor) stayOver() {
	v.locked(func() { v.pending.stay = true })
	v.wake()
}

// oldest is since when at the most something waits unsettled that is not worked on.
func (v *supervisor) oldest(g *generation) time.Time {
	at := g.fresh
	if !v.inPlace(g) { // what was received is worked off
		return at
	}
	for t := range v.held.sched.All() {
		if it := t.Of; it.gen == g && it.State() != dispatch.Running && it.d.Origin.ReceivedAt.Before(at) && !it.d.Origin.ReceivedAt.IsZero() {
			at = it.d.Origin.ReceivedAt
		}
	}
	return at
}

// yield gives up the consumer and everything that waits, what is parked too.
func (v *supervisor) yield(g *generation, until time.Time, out []*dispatch.Item[item]) {
	v.notice(nil, fmt.Sprintf("held or paused for nearly as long as the broker leaves deliveries unsettled (%v): they are given back, and the container subscribes again when that is over", g.caps.Lease))
	if g.asOne() {
		v.back.abandonUnstarted(out)
		return // it is closed when it has nothing left
	}
	if err := v.callUntil(until, g.c.Cancel); err != nil {
		v.notice(err, "cancelling the consumer failed")
	}
	v.back.releaseAll(out)
	v.flushThenRelease(g, until)
}
