package container

import (
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// holds follows everything that keeps work from starting on purpose: the operator's
// pause and the middlewares. The throttle is followed by the gate.
type holds struct {
	common
	axes    *axes         // what it moves
	sub     *subscription // whose Receive a hold interrupts
	hand    *handout      // what follows when a hold ends
	intake  *intake       // called back where the gate's limits have changed
	gate    *gatekeeper   // the throttle
	stock   *stock        // a batch that waits to fill waits for the gate too
	pending *pending      // a limit of the gate moves the broker's window

	held holdReasons // why middlewares hold the intake
}

// watch follows the middlewares that can hold the intake.
func (h *holds) watch(watchers []longshore.Watcher, names []string) (stop func()) {
	stops := []func(){}
	for i, w := range watchers {
		stops = append(stops, w.Watch(func(held bool, reason string) { h.follow(i, names[i], held, reason) }))
	}
	return func() {
		for _, s := range stops {
			s()
		}
	}
}

// follow notes a middleware that begins or ceases to hold the intake.
func (h *holds) follow(watcher int, name string, held bool, reason string) {
	h.locked(func() { h.note(watcher, name, held, reason) })
}

// note is follow under the lock.
func (h *holds) note(watcher int, name string, held bool, reason string) {
	before := h.hand.reported()
	e := Event{Kind: EventIntakeResumed, Reason: name, Condition: name, Text: "released by " + name}
	if held {
		reason = name + ": " + reason
		e = Event{Kind: EventHeld, Reason: reason, Condition: name, Text: "held by " + reason}
	}
	switch {
	case held && h.held.set(watcher, reason, h.s.clock.Now()):
		h.axes.Holds = h.axes.Holds.With(state.Middleware, true)
		if h.sub.gen != nil && !h.axes.Stopping() {
			h.sub.gen.interrupt()
		}
	case !held && h.held.lift(watcher):
		if !h.held.any() {
			h.over()
		}
	default:
		return
	}
	h.axes.changed()
	h.emit(e)
	if after := h.hand.reported(); after != before {
		h.emit(Event{Kind: EventState, Text: string(after)})
	}
	h.wake()
}

// over lets work start again.
func (h *holds) over() {
	h.axes.Holds = h.axes.Holds.With(state.Middleware, false)
	h.sub.returns(h.s.clock.Now())
	// The hold may be over before the supervisor saw it: then there is no new
	// subscription, and the consumer that was interrupted goes on.
	if g := h.sub.gen; g != nil && h.axes.Receives() {
		g.rearm()
	}
	h.hand.wakeOne()
}

// pause follows the operator.
func (h *holds) pause(on bool) {
	h.locked(func() {
		if h.axes.Holds.Has(state.Operator) == on {
			return
		}
		h.axes.Holds = h.axes.Holds.With(state.Operator, on)
		if g := h.sub.gen; g != nil && !h.axes.Stopping() {
			if on {
				g.interrupt()
			} else {
				g.rearm()
			}
		}
		h.hand.wakeOne()
		h.emit(Event{Kind: EventState, Text: string(h.hand.reported())})
	})
	h.wake()
}

// gateOpened follows the gate: it may have permits again, or other limits.
func (h *holds) gateOpened() {
	h.locked(func() {
		h.gate.shut = false
		h.stock.readyChanged()
		if h.gate.follow() {
			h.followGate()
		}
		h.hand.wakeOne()
	})
}

// followGate lets the intake follow new limits: a Receive that was asked for more returns,
// the broker's window changes, and fetching stops while nothing may start.
func (h *holds) followGate() {
	h.axes.Holds = h.axes.Holds.With(state.Throttle, h.gate.limits.holdsAll())
	if h.intake.under() {
		h.intake.recall()
	}
	h.pending.resize = true
	h.wake()
}

// holdReasons are why middlewares hold the intake. Guarded by guard.mu.
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
