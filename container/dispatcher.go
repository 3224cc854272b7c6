package container

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// dispatcher decides which worker gets which delivery, which goroutine receives, and how
// much may be received. It has everything that one lock guards, and the rules that concern
// several of its parts; a rule of one part is a method of that part.
//
// mu is never held while user code, a transport or a log is called, except for
// Gate.TryAcquire and Doubter.Doubts, which do not block.
//
// Methods that do not lock mu are called with mu held, here and in handout.go.
type dispatcher struct {
	reporter           // emits events
	runClock           // the time on the way of each message
	signals            // between the goroutines of the run
	log      *eventLog // events, log lines, and the counts of what is rare
	s        *settings // the checked configuration

	mu      sync.Mutex   // guards what follows
	axes    state.Axes   // what the run may do; everything else about its state is derived
	sub     subscription // the consumers, and when to open the next one
	pool    pool         // the workers, of which each call needs one
	intake  intake       // who receives: one at a time, so that an order is kept
	gate    gatekeeper   // permits for calls
	pending pending      // what the supervisor has to do besides the subscription

	sched   *dispatch.Scheduler[item]     // what is held, in which order, and every sum over it
	manual  map[*longshore.Delivery]*item // with manual settling: what handlers have not settled; else nil
	parking parking                       // when the next parked delivery is due
	linger  linger                        // how long a batch waits to fill
	moves   deadMoves                     // repeats moves to the dead-letter destination
	growth  growth                        // running deliveries that wait for room to become larger

	load  load     // what is measured, for the policy and the window
	count counters // what is counted, for Stats and the report of a stop
}

// pending is what the supervisor has to do besides the subscription; whoever sets one of
// them wakes it. Guarded by dispatcher.mu.
type pending struct {
	resize bool // the window to request from the broker has changed
	tick   bool // the time of a tick has come
	stay   bool // a consumer that is held or paused may have to give up its place
}

func newDispatcher(log *eventLog, w Workers) *dispatcher {
	s := log.s
	r := &dispatcher{reporter: log.reporter, runClock: newRunClock(s), gate: newGatekeeper(s), log: log, s: s,
		sched: newScheduler(s),
		pool:  pool{min: w.Min, max: w.Max, target: w.Min}}
	r.signals = newSignals(s.clock, &r.mu)
	r.sub.clock, r.sub.wake, r.sub.reopen = s.clock, r.wake, s.reopen
	r.parking.clock, r.parking.wake = s.clock, r.parkDue
	r.linger.clock, r.linger.wake = s.clock, r.batchOver
	if s.batch > 0 {
		r.linger.wait = s.linger
	}
	r.load.calls.since, r.sub.downAt = r.began, r.began
	if s.manual {
		r.manual = map[*longshore.Delivery]*item{}
	}
	return r
}

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

// locked runs a short piece of work that reads or changes what mu guards. Nothing else
// locks mu, except for unlocked and the waits of signals.
func (r *dispatcher) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// unlocked gives mu up for a call that may take long: to a transport, or to user code.
func (r *dispatcher) unlocked(f func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	f()
}

// isStopping says whether a stop has begun.
func (r *dispatcher) isStopping() (yes bool) {
	r.locked(func() { yes = r.axes.Stopping() })
	return yes
}

// changed makes the steps of a stop, and a supervisor that waits for room, look again.
func (r *dispatcher) changed() {
	if r.axes.Sub == state.Retained {
		r.wake() // there may be room to subscribe again
	}
	if r.axes.Stopping() {
		r.happened()
	}
}

// reported is the state that the container reports.
func (r *dispatcher) reported() State {
	return stateOf(r.axes.Report(r.sub.gen != nil && r.sub.gen.caps.KeepsPlace, r.provided()))
}

// markDown notes that a consumer is at its end.
func (r *dispatcher) markDown(g *generation, err error) {
	if g.fail(err) && g == r.sub.gen {
		r.axes.Sub = state.Lost
	}
}

// alive says whether a consumer has not come to its end.
func (r *dispatcher) alive(g *generation) (yes bool) {
	r.locked(func() { yes = !g.isDown() })
	return yes
}

// reporting says whether the report of the stop counts what becomes of a delivery now. The
// deliveries that closing gives back were counted before it began.
func (r *dispatcher) reporting() bool { return r.axes.Stopping() && r.axes.Stop < state.Closing }

// window is how many deliveries may be held, parked retries not counted. A worker that
// stands in for one that hangs brings its own places.
func (r *dispatcher) window() int {
	n := r.s.window(r.pool.target) + (r.pool.places()-r.pool.target)*max(r.s.batch, 1)
	if r.s.look == 0 && r.s.batch == 0 {
		n += int(r.load.ahead.extra * float64(r.pool.target))
	}
	return n
}

// wantedWindow is how many deliveries the broker should let us hold: those in work, and the
// parked ones with room for more. It grows in steps, so that a burst of failures does not
// use up the window before the broker has enlarged it.
func (r *dispatcher) wantedWindow() int {
	base := r.window()
	base = r.gate.narrow(base, r.pool.target)
	beside := r.sched.Beside()
	if beside == 0 {
		return base
	}
	steps := (beside + base/2 + base - 1) / base
	return base * (1 + steps)
}

// noteParked requests a larger window if parked deliveries have nearly used up the current
// one.
func (r *dispatcher) noteParked() {
	if g := r.sub.gen; g != nil && !r.pending.resize && r.sched.Beside()+r.window()*5/4 > g.asked {
		r.pending.resize = true
		r.wake()
	}
}

// provided says whether the deliveries that a hold left here must be handled before more
// are requested. Otherwise each failed trial of a breaker would bring another window in,
// and more of a key would pile up behind each message that a trial gave back.
func (r *dispatcher) provided() bool {
	return r.axes.Sub == state.Retained && r.sched.InWindow()+max(r.sched.Beside()-r.s.parked, 0) >= r.window()
}

// inventory is a view of everything that is held, to be used before mu is given up.
func (r *dispatcher) inventory() inventory {
	return inventory{r.pool.workers, r.manual, r.sched, r.s.lastAttempt()}
}
