package container

import (
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/container/internal/state"
)

// watch follows the middlewares that can hold the intake, and the gate.
func (r *engine) watch() (stop func()) {
	stops := []func(){}
	for i, w := range r.c.watchers {
		stops = append(stops, w.Watch(func(held bool, reason string) { r.setHold(i, held, reason) }))
	}
	gate := r.watchGate()
	return func() {
		for _, s := range stops {
			s()
		}
		// A gate must go on opening while received work is worked off.
		r.unwatchGate = gate
	}
}

func (r *engine) setHold(i int, held bool, reason string) {
	r.mu.Lock()
	if _, was := r.held.reasons[i]; was == held {
		r.mu.Unlock()
		return
	}
	before := r.reported()
	e := Event{Kind: EventIntakeResumed, Reason: r.c.names[i], Text: "released by " + r.c.names[i]}
	if held {
		if len(r.held.reasons) == 0 {
			r.held.since = r.s.clock.Now()
		}
		r.held.reasons[i] = r.c.names[i] + ": " + reason
		e = Event{Kind: EventHeld, Reason: r.held.reasons[i], Text: "held by " + r.held.reasons[i]}
		r.axes.Holds = r.axes.Holds.With(state.Middleware, true)
		if r.sub.gen != nil && !r.axes.Stopping() {
			r.sub.gen.interrupt()
		}
	} else {
		delete(r.held.reasons, i)
		if len(r.held.reasons) == 0 {
			r.axes.Holds = r.axes.Holds.With(state.Middleware, false)
			r.sub.reopenAt = time.Time{} // we left by our own wish: come back at once
			r.sub.downAt = r.s.clock.Now()
			// It may be over before the supervisor saw it: then nobody subscribes anew, and
			// the consumer that was interrupted goes on.
			if g := r.sub.gen; g != nil && r.axes.Receives() {
				g.rearm(r.life.base)
			}
			r.wakeOne()
		}
	}
	r.changed()
	r.emit(e)
	if after := r.reported(); after != before {
		r.emit(Event{Kind: EventState, Text: string(after)})
	}
	r.mu.Unlock()
	r.wake()
}

// holdReason joins the reasons. The caller holds mu.
func (r *engine) holdReason() string {
	reasons := make([]string, 0, len(r.held.reasons))
	for _, s := range r.held.reasons {
		reasons = append(reasons, s)
	}
	slices.Sort(reasons)
	return strings.Join(reasons, ", ")
}

// suspend cancels the consumer because a middleware holds the intake, where it has no
// place to lose (see yield.go): the broker and its monitoring see that nobody consumes. What runs goes on and is settled
// on the old consumer, which is closed when the last of it is. What was not
// started is given back, except where the broker counts that: there it waits here.
func (r *engine) suspend(g *generation) {
	r.mu.Lock()
	if !r.axes.Holds.Has(state.Middleware) { // over meanwhile
		r.mu.Unlock()
		return
	}
	g.canceled = true
	g.interrupt()
	r.sub.gen, r.axes.Sub = nil, state.Suspended
	if g.caps.CountsReturns {
		r.axes.Sub = state.Retained
	}
	r.sub.old = append(r.sub.old, g)
	r.mu.Unlock()
	until := r.s.clock.Now().Add(r.s.grace)
	if err := r.callUntil(until, g.c.Cancel); err != nil {
		r.notice(err, "cancelling the consumer failed")
	}
	if g.caps.CountsReturns {
		r.keepBuffer(g, until)
	} else {
		r.returnReady(g)
		// What is older must be back before the buffer is, and both before we come again.
		if err := r.callUntil(until, g.c.Flush); err != nil {
			r.notice(err, "flushing a cancelled consumer failed")
		}
		if err := r.callUntil(until, g.c.Release); err != nil {
			r.notice(err, "giving back what was buffered failed")
		}
	}
	r.mu.Lock()
	r.sub.standby = false
	r.mu.Unlock()
}

// provided says whether what a hold left here has to be worked off before more is
// asked for. Else each trial of a breaker would bring another window in, for as long
// as the trials fail: behind each message that a trial gave back more of its key would
// pile up. The caller holds mu.
func (r *engine) provided() bool {
	return r.axes.Sub == state.Retained && r.sched.InWindow()+max(r.sched.Beside()-r.s.parked, 0) >= r.window()
}

// keepBuffer takes in what the transport holds: given back at every opening of a
// breaker it would come to the broker's delivery limit without a handler ever
// having seen it.
func (r *engine) keepBuffer(g *generation, until time.Time) {
	r.waitFor(func() time.Time { return until }, func() bool { return !r.intake.receiving })
	r.pull(g, until)
	if err := r.callUntil(until, g.c.Release); err != nil { // nothing is left, unless the time was over
		r.notice(err, "giving back what was buffered failed")
	}
	r.wake() // the waiting may have taken somebody else's word
}

// returnReady gives the ready items of a generation back with their followers.
func (r *engine) returnReady(g *generation) {
	r.mu.Lock()
	out := r.sched.TakeReady(&g.Owner)
	r.mu.Unlock()
	r.releaseAll(out)
}
