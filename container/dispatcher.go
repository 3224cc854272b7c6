package container

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// dispatcher decides who does what next: which worker gets which delivery, who
// receives, and what may be received. It is what one lock guards, and the rules that
// concern several of its parts; a rule of one part is a method of that part.
//
// mu is never held while user code, a transport or a log is called, except for
// Gate.TryAcquire, which does not block.
//
// Methods that do not lock mu are called with mu held, here and in the other files of
// the dispatcher: handout.go, intake.go, linger.go, suspend.go, yield.go.
type dispatcher struct {
	reporter
	runClock
	log  *eventLog     // events, log lines, and the counts of what is rare
	s    *settings     // the checked configuration
	kick chan struct{} // wakes the supervisor

	mu       sync.Mutex
	axes     state.Axes   // what it may do; everything else about its state is derived
	sub      subscription // the consumers, and when to open the next one
	pool     pool         // the workers
	intake   intake       // who receives
	linger   linger       // how long a batch waits to fill
	delayed  delayed      // what the broker keeps back for a while
	held     holdReasons  // why middlewares hold the intake
	stay     stay         // how long a held consumer may keep its place
	stopping shutdown     // what a stop waits for and reports

	sched      *dispatch.Scheduler[item] // what is held, in which order, and every sum over it
	items      freeItems                 // for the next deliveries
	manual     map[*longshore.Delivery]*item
	movingDead bool   // a goroutine moves messages to the dead-letter place again
	moveDead   func() // what it does
	resizeDue  bool   // the window to request from the broker has changed
	tickDue    bool   // the supervisor is to call scaler.onTick

	gate    gatekeeper   // permits for calls
	growth  growth       // who waits to become larger
	parking parking      // the space and the timer for what is parked
	dead    *deadLetters // where messages go that are given up

	load    load // what is measured
	count   counters
	blocked bool
}

func newDispatcher(log *eventLog, w Workers) *dispatcher {
	s := log.s
	r := &dispatcher{reporter: log.reporter, runClock: newRunClock(s), gate: newGatekeeper(s), log: log, s: s, kick: make(chan struct{}, 1),
		sched:    newScheduler(s),
		pool:     pool{min: w.Min, max: w.Max, target: w.Min},
		stopping: shutdown{nudge: make(chan struct{})}}
	r.sub.clock, r.sub.wake, r.sub.reopen = s.clock, r.wake, s.reopen
	r.gate.opened = r.gateOpened
	r.load.calls.since, r.sub.downAt = r.began, r.began
	if s.manual {
		r.manual = map[*longshore.Delivery]*item{}
	}
	return r
}

// runClock is the time on the way of each message: of the system's two clocks it reads
// one, the monotonic, which is half the price. Its wall part goes on from the start of
// the run.
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

func (r *dispatcher) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.axes.Stopping()
}

// wake lets the supervisor look at everything again.
func (r *dispatcher) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// changed lets whoever waits for something to end look again.
func (r *dispatcher) changed() {
	if r.axes.Sub == state.Retained {
		r.wake() // there may be room to subscribe again
	}
	if r.axes.Stopping() {
		r.stopping.happened()
	}
}

// awaitChange waits for a change; false when end is reached.
func (r *dispatcher) awaitChange(nudge <-chan struct{}, end time.Time) bool {
	left := end.Sub(r.s.clock.Now())
	if left <= 0 {
		return false
	}
	timeout, stop := after(r.s.clock, left)
	defer stop()
	select {
	case <-nudge:
		return true
	case <-r.kick: // the deadline may have moved
		return true
	case <-timeout:
		return false
	}
}

// waitFor waits for a condition until end; both are asked with mu held.
func (r *dispatcher) waitFor(end func() time.Time, cond func() bool) {
	for {
		r.mu.Lock()
		ok, nudge, limit := cond(), r.stopping.nudge, end()
		r.mu.Unlock()
		if ok || !r.awaitChange(nudge, limit) {
			return
		}
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

func (r *dispatcher) alive(g *generation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !g.isDown()
}

// reporting says that what becomes of a delivery now is counted in the report. When
// what is left has been counted, closing only gives that back.
func (r *dispatcher) reporting() bool { return r.axes.Stopping() && r.axes.Stop < state.Closing }
