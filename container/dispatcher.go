package container

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// dispatcher makes and keeps everything that one lock guards. Its parts are types that own
// their fields: hand decides which worker gets which delivery, which goroutine receives,
// and how much may be received; held has the deliveries themselves. Every other part of the
// run gets only those that it works with.
type dispatcher struct {
	common
	log *eventLog // events, log lines, and the counts of what is rare

	axes    axes         // what the run may do; everything else about its state is derived
	sub     subscription // the consumers, and when to open the next one
	pending pending      // what the supervisor has to do besides the subscription
	hand    handout      // who does what next
	held    stock        // what is held, and in which order
	load    load         // what is measured, for the policy and the window
	count   counters     // what is counted, for Stats and the report of a stop
}

// common is what every part of a run has.
type common struct {
	reporter           // emits events
	runClock           // the time on the way of each message
	*guard             // the lock of the run
	*signals           // between the goroutines of the run
	s        *settings // the checked configuration
}

// guard is the one lock of a run. It is never held while user code, a transport or a log is
// called, except for Gate.TryAcquire and Doubter.Doubts, which do not block.
//
// Methods of types that it guards do not lock it: they are called with it held. Of a type
// that also works without the lock, the names of methods that need it end in Locked.
type guard struct {
	mu sync.Mutex // see pool, intake, stock and the others that name it
}

// locked runs a short piece of work that reads or changes what mu guards. Nothing else
// locks mu, except for unlocked and the waits of signals.
func (k *guard) locked(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// unlocked gives mu up for a call that may take long: to a transport, or to user code.
func (k *guard) unlocked(f func()) {
	k.mu.Unlock()
	defer k.mu.Lock()
	f()
}

// alive says whether a consumer has not come to its end.
func (k *guard) alive(g *generation) (yes bool) {
	k.locked(func() { yes = !g.isDown() })
	return yes
}

// axes are what the run may do, with a way to wake those who wait for a change. Guarded by
// guard.mu.
type axes struct {
	state.Axes          // the three axes; see the package
	sig        *signals // to whoever waits
}

// changed makes the steps of a stop, and a supervisor that waits for room, look again.
func (a *axes) changed() {
	if a.Sub == state.Retained {
		a.sig.wake() // there may be room to subscribe again
	}
	if a.Stopping() {
		a.sig.happened()
	}
}

// forward moves the stop on; it never moves back.
func (a *axes) forward(to state.Stop) { a.Axes = a.Forward(to) }

// ending says that there is nothing to do for workers any more.
func (a *axes) ending() bool { return a.Stop >= state.Closing }

// reporting says whether the report of the stop counts what becomes of a delivery now. The
// deliveries that closing gives back were counted before it began.
func (a *axes) reporting() bool { return a.Stopping() && a.Stop < state.Closing }

// pending is what the supervisor has to do besides the subscription; whoever sets one of
// them wakes it. Guarded by guard.mu.
type pending struct {
	resize bool // the window to request from the broker has changed
	tick   bool // the time of a tick has come
	stay   bool // a consumer that is held or paused may have to give up its place
}

func newDispatcher(log *eventLog, w Workers) *dispatcher {
	s := log.s
	lock := &guard{}
	r := &dispatcher{log: log, common: common{log.reporter, newRunClock(s), lock, newSignals(s.clock, &lock.mu), s}}
	r.axes.sig = r.signals
	r.sub.clock, r.sub.wake, r.sub.reopen, r.sub.downAt = s.clock, r.wake, s.reopen, r.began
	r.held = newStock(r.common, &r.axes, &r.sub)
	r.held.parking.wake = r.parkDue
	r.held.linger.wake = r.batchOver
	r.hand = handout{common: r.common, axes: &r.axes, sub: &r.sub, held: &r.held, pending: &r.pending, ahead: &r.load.ahead,
		gate: newGatekeeper(s), pool: pool{min: w.Min, max: w.Max, target: w.Min}}
	r.load.calls.since = r.began
	return r
}

// parkDue lets parked deliveries go on whose time has come.
func (r *dispatcher) parkDue() {
	r.locked(func() {
		if r.held.parking.timer = nil; r.axes.ending() {
			return
		}
		r.held.wakeDue(&r.hand.pool.wg)
		r.hand.wakeOne()
	})
}

// batchOver lets a worker take a batch that did not fill in its time.
func (r *dispatcher) batchOver() {
	r.locked(func() {
		r.held.linger.end(r.held.sched.Ready() > 0 && !r.hand.gate.shut)
		r.hand.wakeOne()
	})
}

// takeDue takes the next item whose move to the dead-letter destination is due; nil: none is.
func (r *dispatcher) takeDue() (it *item) {
	r.locked(func() {
		if it = r.held.moves.next(r.held.sched); it == nil {
			r.axes.changed()
		}
	})
	return it
}

// isStopping says whether a stop has begun.
func (r *dispatcher) isStopping() (yes bool) {
	r.locked(func() { yes = r.axes.Stopping() })
	return yes
}

// inventory is a view of everything that is held, to be used before mu is given up.
func (r *dispatcher) inventory() inventory { return r.held.inventory(&r.hand.pool) }

// runClock tells the time on the way of each message. It reads only the monotonic one of
// the system's two clocks, which halves the cost, and adds it to the wall time at which the
// run began.
type runClock struct {
	of     longshore.Clock // the container's
	system bool            // it is the system's
	began  time.Time       // when the run began
}

func newRunClock(s *settings) runClock { return runClock{s.clock, s.system, s.clock.Now()} }

func (c runClock) now() time.Time {
	if c.system {
		return c.began.Add(time.Since(c.began))
	}
	return c.of.Now()
}
