package container

import (
	"time"

	"github.com/longshore-go/longshore/container/internal/state"
)

// handout decides which worker gets which delivery, which goroutine receives, and how much
// may be received. It owns the workers, the intake and the gate. Guarded by guard.mu.
type handout struct {
	common
	axes    *axes         // what the run may do
	sub     *subscription // the consumer to receive from
	held    *stock        // what could be handed out
	pending *pending      // tells the supervisor that the broker's window should grow
	ahead   *lookahead    // what a slow receive makes worth holding

	pool   pool       // the workers, of which each call needs one
	intake intake     // who receives: one at a time, so that an order is kept
	gate   gatekeeper // permits for calls
}

// setTarget starts workers or retires the coldest idle ones.
func (h *handout) setTarget(n int) {
	h.pool.target = n
	if !h.axes.ending() {
		h.pool.fill()
	}
	h.pool.shed()
	h.wakeOne()
}

// leave takes a worker off the list. A wake-up it got must be passed on: what it was for
// still waits.
func (h *handout) leave(w *worker) {
	h.pool.remove(w)
	h.wakeOne()
	h.axes.changed()
}

// wakeOne wakes the hottest idle worker if there is something for it to do. One
// wake-up is in flight at a time; who was woken wakes the next. Where no worker is idle,
// one that receives is called back to work that became ready while it waits for the
// broker: a retry that is due, a lane that goes on, an opened gate.
func (h *handout) wakeOne() {
	switch {
	case h.pool.waking:
	case h.pool.mayWake():
		if h.startable() || h.mayReceive() || h.axes.ending() {
			h.pool.wakeNext()
		}
	case h.intake.by == workerReceives:
		if h.startable() {
			h.intake.recall()
		}
	case h.pool.live > 0 && h.mayFetch():
		h.intake.by = fetcherStarts
		h.pool.wg.Go(h.intake.fetch)
	}
}

// startable says whether a worker would find something.
func (h *handout) startable() bool {
	if h.held.sched.Ready() == 0 || h.gate.shut || !h.axes.Starts() {
		return false
	}
	return h.s.batch == 0 || h.batchReady()
}

// mayReceive says whether a worker without work should become the receiver.
func (h *handout) mayReceive() bool {
	g := h.sub.gen
	if h.intake.by != noReceiver || !h.axes.Receives() || !g.delivers() || g.ctx.Err() != nil {
		return false
	}
	return !h.gate.shut && h.free() > 0 && !h.triesHeld()
}

// trialSoon is how near a parked retry has to be for a trial to wait for it.
const trialSoon = time.Second

// triesHeld says whether a middleware only tries if work may start, and the deliveries that
// are held are enough to find out. To receive more for each trial would fill the memory for
// as long as the trials fail: behind parked heads, followers take no place in the window.
func (h *handout) triesHeld() bool {
	due, parked := h.held.sched.NextDue()
	return parked && (h.held.sched.InWindow() > 0 || due.Sub(h.now()) < trialSoon) && h.gate.doubts()
}

// mayFetch says whether to receive although all workers are busy, in another goroutine: when
// receives are slow and half of the window is free, so that they are large ones.
func (h *handout) mayFetch() bool {
	return h.intake.pace == paceSlow && h.mayReceive() && 2*h.free() >= h.window()
}

// free is how many more deliveries may be held.
func (h *handout) free() int {
	window := h.window()
	free := h.held.sched.Free(window)
	if free <= 0 && h.held.sched.Relieve(window) {
		free = h.held.sched.Free(window)
	}
	return h.gate.room(free, h.held.sched.InWindow(), h.held.sched.Active())
}

// batchReady says whether a batch should be taken now: it is full, its time is over, or
// waiting would bring nothing more. Something is ready.
func (h *handout) batchReady() bool {
	return h.held.sched.Ready() >= h.s.batch || h.held.linger.state == lingerOver || h.s.linger == 0 || h.axes.Stopping() ||
		h.held.sched.Front().Of.alone() || h.free() <= 0
}

// window is how many deliveries may be held, parked retries not counted. A worker that
// stands in for one that hangs brings its own places.
func (h *handout) window() int {
	n := h.s.window(h.pool.target) + (h.pool.places()-h.pool.target)*max(h.s.batch, 1)
	if h.s.look == 0 && h.s.batch == 0 {
		n += int(h.ahead.extra * float64(h.pool.target))
	}
	return n
}

// wantedWindow is how many deliveries the broker should let us hold: those in work, and the
// parked ones with room for more. It grows in steps, so that a burst of failures does not
// use up the window before the broker has enlarged it.
func (h *handout) wantedWindow() int {
	base := h.window()
	base = h.gate.narrow(base, h.pool.target)
	beside := h.held.sched.Beside()
	if beside == 0 {
		return base
	}
	steps := (beside + base/2 + base - 1) / base
	return base * (1 + steps)
}

// noteParked requests a larger window if parked deliveries have nearly used up the current
// one.
func (h *handout) noteParked() {
	if g := h.sub.gen; g != nil && !h.pending.resize && h.held.sched.Beside()+h.window()*5/4 > max(g.window.n, g.window.asked) {
		h.pending.resize = true
		h.wake()
	}
}

// provided says whether the deliveries that a hold left here must be handled before more
// are requested. Otherwise each failed trial of a breaker would bring another window in,
// and more of a key would pile up behind each message that a trial gave back.
func (h *handout) provided() bool {
	return h.axes.Sub == state.Retained && h.held.sched.InWindow()+max(h.held.sched.Beside()-h.s.parked, 0) >= h.window()
}

// reported is the state that the container reports.
func (h *handout) reported() State {
	return stateOf(h.axes.Report(h.sub.gen != nil && h.sub.gen.caps.KeepsPlace, h.provided()))
}
