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
// takes back what nobody settles: before it does, all is given back by us, in order,
// and the consumer leaves after all. The same goes for an operator's pause.

// inPlace says whether a hold leaves the consumer in its place. The caller holds mu.
func (r *engine) inPlace(g *generation) bool {
	return r.axes.Holds.Has(state.Middleware) && g.caps.KeepsPlace
}

// patience is how long deliveries may be left unsettled; 0: for ever.
func (g *generation) patience() time.Duration { return g.caps.Lease / 4 * 3 }

// yieldWhenDue gives the consumer's place up if what waits here would soon be taken
// back, and else looks again when it would.
func (r *engine) yieldWhenDue() {
	g, now := r.sub.gen, r.s.clock.Now() // only the supervisor, which calls this, changes gen
	empty := false
	if g != nil {
		b, ok := g.c.(transport.Bufferer)
		empty = ok && b.Buffered() == 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stay.due = false
	if g == nil || g.down != nil || g.patience() <= 0 || !r.axes.Holds.Has(state.Operator) && !r.inPlace(g) {
		return
	}
	if empty {
		g.fresh = now
	}
	left := r.oldest(g).Add(g.patience()).Sub(now)
	switch {
	case left > 0:
		r.armStay(left)
	case r.sched.Active() > 0 || r.undertaking || r.sched.Waiting() > 0: // the place is given up when nothing of ours runs any more
		r.armStay(g.patience() / 24)
	default:
		r.yieldNow(g, now)
	}
}

// oldest is since when at the most something waits unsettled that nobody works on.
// The caller holds mu.
func (r *engine) oldest(g *generation) time.Time {
	at := g.fresh
	if !r.inPlace(g) { // what was received is worked off
		return at
	}
	for t := range r.sched.All() {
		if it := t.Of; it.gen == g && it.State() != dispatch.Running && it.d.Origin.ReceivedAt.Before(at) && !it.d.Origin.ReceivedAt.IsZero() {
			at = it.d.Origin.ReceivedAt
		}
	}
	return at
}

func (r *engine) armStay(d time.Duration) {
	if r.stay.timer != nil {
		r.stay.timer.Stop()
	}
	r.stay.timer = r.s.clock.AfterFunc(d, func() {
		r.mu.Lock()
		r.stay.due = true
		r.mu.Unlock()
		r.wake()
	})
}

// yieldNow gives up the consumer and everything that waits, what is parked too. The
// caller holds mu, which is given up meanwhile.
func (r *engine) yieldNow(g *generation, now time.Time) {
	g.canceled, r.sub.gen, r.axes.Sub = true, nil, state.Yielded
	g.interrupt()
	r.sub.old = append(r.sub.old, g)
	out := r.sched.TakeWaiting() // before anybody can start it
	r.sub.standby = false
	r.mu.Unlock()
	defer r.mu.Lock()
	r.notice(nil, fmt.Sprintf("held or paused for so long that the broker would take back what was received (after %v): it goes back now, and there is no consumer until the end of that", g.caps.Lease))
	if g.asOne() {
		r.abandonUnstarted(out)
		return // it is closed when it has nothing left
	}
	until := now.Add(r.s.grace)
	if err := r.callUntil(until, g.c.Cancel); err != nil {
		r.notice(err, "cancelling the consumer failed")
	}
	r.releaseAll(out)
	// What is older must be back before the buffer is.
	if err := r.callUntil(until, g.c.Flush); err != nil {
		r.notice(err, "flushing a cancelled consumer failed")
	}
	if err := r.callUntil(until, g.c.Release); err != nil {
		r.notice(err, "giving back what was buffered failed")
	}
}

// asOne says whether what goes back does so all at once, by closing the consumer. A
// single active one that is cancelled has handed its role on before anything of its
// comes back, so that what is newer is done first; and what it returns without that
// comes straight back to it.
func (g *generation) asOne() bool { return g.caps.SingleActive && g.caps.KeepsPlace }

// leaves says that a delivery which is to go back does so by the closing of its
// consumer, and needs no word before.
func (r *engine) leaves(it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.axes.Stopping() && r.axes.Stop >= state.ReturnOnly && it.gen.asOne() && it.d.Owned()
}

// abandonUnstarted forgets what closing the consumer gives back.
func (r *engine) abandonUnstarted(out []*dispatch.Item[item]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.axes.Stopping() {
		r.log.drained(tally{released: len(out)})
	}
	r.count.verdicts[longshore.VerdictRelease] += int64(len(out))
	for _, t := range out {
		r.finish(t.Of)
	}
}
