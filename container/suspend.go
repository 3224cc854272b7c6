package container

import (
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/container/internal/state"
)

// holdReasons are why middlewares hold the intake. Guarded by dispatcher.mu.
type holdReasons struct {
	by    map[int]string // by watcher, since each lifts only its own hold
	since time.Time      // when the first of them came
}

// set notes that a watcher holds; false if it is known.
func (h *holdReasons) set(watcher int, reason string, now time.Time) bool {
	if _, was := h.by[watcher]; was {
		return false
	}
	if !h.any() {
		h.since = now
	}
	if h.by == nil {
		h.by = map[int]string{}
	}
	h.by[watcher] = reason
	return true
}

// lift notes that a watcher holds no longer; false if it did not.
func (h *holdReasons) lift(watcher int) bool {
	_, was := h.by[watcher]
	delete(h.by, watcher)
	return was
}

// any says whether anything holds.
func (h *holdReasons) any() bool { return len(h.by) > 0 }

// text joins the reasons.
func (h *holdReasons) text() string {
	reasons := make([]string, 0, len(h.by))
	for _, s := range h.by {
		reasons = append(reasons, s)
	}
	slices.Sort(reasons)
	return strings.Join(reasons, ", ")
}

// setHold follows a middleware that begins or ceases to hold the intake.
func (r *dispatcher) setHold(watcher int, name string, held bool, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.reported()
	e := Event{Kind: EventIntakeResumed, Reason: name, Text: "released by " + name}
	if held {
		reason = name + ": " + reason
		e = Event{Kind: EventHeld, Reason: reason, Text: "held by " + reason}
	}
	switch {
	case held && r.held.set(watcher, reason, r.s.clock.Now()):
		r.axes.Holds = r.axes.Holds.With(state.Middleware, true)
		if r.sub.gen != nil && !r.axes.Stopping() {
			r.sub.gen.interrupt()
		}
	case !held && r.held.lift(watcher):
		if !r.held.any() {
			r.holdOver()
		}
	default:
		return
	}
	r.changed()
	r.emit(e)
	if after := r.reported(); after != before {
		r.emit(Event{Kind: EventState, Text: string(after)})
	}
	r.wake()
}

// holdOver lets work start again.
func (r *dispatcher) holdOver() {
	r.axes.Holds = r.axes.Holds.With(state.Middleware, false)
	r.sub.returns(r.s.clock.Now())
	// The hold may be over before the supervisor saw it: then there is no new
	// subscription, and the consumer that was interrupted goes on.
	if g := r.sub.gen; g != nil && r.axes.Receives() {
		g.rearm()
	}
	r.wakeOne()
}

// suspend cancels the consumer because a middleware holds the intake, where it has no
// place to lose (see yield.go): the broker and its monitoring see that nothing is
// consumed. What runs goes on and is settled on the old consumer, which is closed when
// the last of it is. What was not started is given back, except where the broker counts
// that: there it waits here.
func (v *supervisor) suspend(g *generation) {
	v.mu.Lock()
	if !v.axes.Holds.Has(state.Middleware) { // over meanwhile
		v.mu.Unlock()
		return
	}
	g.forward(stageCanceled)
	g.interrupt()
	v.sub.leave()
	v.axes.Sub = state.Suspended
	if g.caps.CountsReturns {
		v.axes.Sub = state.Retained
	}
	v.mu.Unlock()
	until := v.soon()
	if err := v.callUntil(until, g.c.Cancel); err != nil {
		v.notice(err, "cancelling the consumer failed")
	}
	if g.caps.CountsReturns {
		v.keepBuffer(g, until)
		return
	}
	v.mu.Lock()
	out := v.sched.TakeReady(&g.Owner)
	v.mu.Unlock()
	v.back.releaseAll(out)
	v.flushThenRelease(g, until) // and both before we come again
}

// flushThenRelease lets the transport give back what it has buffered. What is older must
// be back before.
func (v *supervisor) flushThenRelease(g *generation, until time.Time) {
	if err := v.callUntil(until, g.c.Flush); err != nil {
		v.notice(err, "flushing a cancelled consumer failed")
	}
	v.releaseBuffer(g, until)
}

func (v *supervisor) releaseBuffer(g *generation, until time.Time) {
	if err := v.callUntil(until, g.c.Release); err != nil {
		v.notice(err, "giving back what was buffered failed")
	}
}

// keepBuffer takes in what the transport holds: given back at every opening of a
// breaker it would come to the broker's delivery limit without a handler ever
// having seen it.
func (v *supervisor) keepBuffer(g *generation, until time.Time) {
	v.waitFor(func() time.Time { return until }, func() bool { return !v.intake.under() })
	ctx, cancel := v.until(until)
	v.recv.pull(ctx, g)
	cancel()
	v.releaseBuffer(g, until) // nothing is left, unless the time was over
	v.wake()                  // the waiting may have used up a wake-up that was for another reason
}

// provided says whether what a hold left here has to be worked off before more is
// asked for. Else each trial of a breaker would bring another window in, for as long
// as the trials fail: behind each message that a trial gave back more of its key would
// pile up.
func (r *dispatcher) provided() bool {
	return r.axes.Sub == state.Retained && r.sched.InWindow()+max(r.sched.Beside()-r.s.parked, 0) >= r.window()
}
