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
type dispatcher struct {
	reporter

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

	sched       *dispatch.Scheduler[item] // what is held, in which order, and every sum over it
	items       freeItems                 // for the next deliveries
	manual      map[*longshore.Delivery]*item
	undertaking bool
	resizeDue   bool
	aside       asideWatch

	gateShut  bool
	gateNow   gateState
	gateAgain longshore.Timer
	parkTimer longshore.Timer
	parkArmed time.Time
	parkFull  bool

	tick     tickState
	terms    terminalState
	log      *eventLog // events, log lines, and the counts of what is rare
	count    counters
	blocked  bool
	laneTold time.Time
}

func newDispatcher(log *eventLog, w Workers) *dispatcher {
	s := log.s
	dp := &dispatcher{reporter: log.reporter, log: log, s: s, kick: make(chan struct{}, 1),
		held: holdReasons{reasons: map[int]string{}}, sched: newScheduler(s),
		pool:     pool{min: w.Min, max: w.Max, target: w.Min},
		stopping: shutdown{nudge: make(chan struct{})}}
	dp.tick.began = s.clock.Now()
	dp.tick.last, dp.sub.downAt = dp.tick.began, dp.tick.began
	if s.manual {
		dp.manual = map[*longshore.Delivery]*item{}
	}
	return dp
}

// now is the time on the way of each message: of the system's two clocks it reads
// one, the monotonic, which is half the price. Its wall part goes on from the
// start of the run.
func (dp *dispatcher) now() time.Time {
	if dp.s.system {
		return dp.tick.began.Add(time.Since(dp.tick.began))
	}
	return dp.s.clock.Now()
}

// wake lets the supervisor look at everything again.
func (dp *dispatcher) wake() {
	select {
	case dp.kick <- struct{}{}:
	default:
	}
}

// changed tells whoever waits for something to end; the caller holds mu.
func (dp *dispatcher) changed() {
	if dp.axes.Sub == state.Retained {
		dp.wake() // there may be room to subscribe again
	}
	if dp.axes.Stopping() {
		close(dp.stopping.nudge)
		dp.stopping.nudge = make(chan struct{})
	}
}
