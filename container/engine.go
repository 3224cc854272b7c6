package container

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// engine is one life of a container, from Start to the end of its drain. Late
// callbacks hold the engine and not the container, so they cannot touch the next one.
//
// mu guards the dispatcher: what is ready, the lanes, the workers and the wishes
// that steer them. It is never held while user code, a transport or a log is
// called, except for Gate.TryAcquire, which does not block.
type engine struct {
	c   *ListenerContainer
	s   *settings
	src transport.Source

	opensPaused bool // the source can be opened without taking anything

	base       context.Context //nolint:containedctx // of all deliveries; ends with ErrStopping; lives and ends with its struct, not with a call
	baseCancel context.CancelCauseFunc
	settle     context.Context //nolint:containedctx // of settlements; ends with the run; lives and ends with its struct, not with a call
	settleEnd  context.CancelFunc
	open       context.Context //nolint:containedctx // of opening; ends when Stop is called; lives and ends with its struct, not with a call
	openCancel context.CancelFunc
	hard       context.Context //nolint:containedctx // of the last steps; ends when a stop must be over; lives and ends with its struct, not with a call
	hardCancel context.CancelFunc

	kick    chan struct{} // wakes the supervisor
	started chan struct{} // closed when the first start is decided
	failed  error         // its error; read after started
	ended   chan struct{} // closed at the end

	mu   sync.Mutex
	axes state.Axes    // what it may do; everything else about its state is derived
	gen  *generation   // nil: not subscribed
	old  []*generation // cancelled, with deliveries still out
	gens int

	sched       *dispatch.Scheduler[item] // what is held, in which order, and every sum over it
	items       freeItems
	entering    []*dispatch.Item[item] // scratch of whoever receives
	manual      map[*longshore.Delivery]*item
	loops       loops
	undertaking bool
	resizeDue   bool

	workers     []*worker
	idle        []*worker // the hottest last
	live        int       // workers, retiring ones not counted
	target      int
	min, max    int
	replacing   int // extra workers for stuck ones
	standIns    standIns
	aside       asideWatch
	waking      bool
	receiving   bool
	slow        bool            // receives take long
	buffered    bool            // they take next to nothing
	fetching    bool            // a goroutine receives beside the workers
	receiver    *generation     // of the Receive that runs
	receiverCtx context.Context //nolint:containedctx // lives and ends with its struct, not with a call
	awayUntil   time.Time       // when the last delivery given back with a delay is due
	away        away            // those that are not due
	holdsFrom   time.Time       // before that the broker is not asked to hold a retry
	wg          sync.WaitGroup  // workers

	holds                  map[int]string // why the watchers hold, by watcher
	stayDue                bool           // look whether a hold outlasts the lease
	stayTimer              longshore.Timer
	drainEnd               time.Time
	hardTimer, settleTimer longshore.Timer
	hardEnd                time.Time
	stopAt                 time.Time
	nudge                  chan struct{} // closed and replaced when something ends, while somebody waits
	gateShut               bool
	gateNow                gateState
	gateAgain              longshore.Timer

	batchDue   bool
	batchTimer longshore.Timer
	batchArmed bool
	parkTimer  longshore.Timer
	parkArmed  time.Time

	scaler autoscale.Scaler
	tick   tickState
	terms  terminalState
	count  counters
	report *Report
	tally  tally

	reopenTries int
	downAt      time.Time // of the last loss; before the first subscription, of the start
	reopenAt    time.Time
	reopenTimer longshore.Timer
	lastErr     error
	standby     bool
	unwatchGate func()
	blocked     bool
	parkFull    bool
	laneTold    time.Time
}

// generation is one subscription. Everything that reports about it holds a
// pointer to it, so a report from an earlier one is recognised.
type generation struct {
	id     int
	c      transport.Consumer
	caps   longshore.Capabilities
	ctx    context.Context //nolint:containedctx // of Receive; lives and ends with its struct, not with a call
	cancel context.CancelFunc

	dispatch.Owner // of the deliveries held, parked ones included

	down      error                         // it is at its end
	exhausted bool                          // Receive said ErrCanceled
	canceled  bool                          // we called Cancel
	paused    bool                          // Pauser.Pause is in force
	leaving   []func(longshore.Origin) bool // what left while a Receive may have had it in hand
	opened    bool                          // paused since it was opened, and until every hold is over
	asked     int                           // window last asked of the broker; guarded by engine.mu
	since     time.Time
	fresh     time.Time // what the transport has buffered came after it
}

func newRun(c *ListenerContainer) *engine {
	r := &engine{c: c, s: c.set, src: c.src,
		kick: make(chan struct{}, 1), started: make(chan struct{}), ended: make(chan struct{}),
		holds: map[int]string{}, sched: newScheduler(c.set),
		min: c.workers.Min, max: c.workers.Max, target: c.workers.Min,
		scaler: c.set.policy.New(), nudge: make(chan struct{})}
	if c, ok := c.set.policy.(autoscale.Cycler); ok {
		cycles := c.Cycles()
		r.tick.cycles.of = &cycles
	}
	r.tick.began = r.s.clock.Now()
	r.tick.last, r.downAt = r.tick.began, r.tick.began
	r.opensPaused = c.src.Capabilities().OpensPaused
	r.axes.Holds = state.None.With(state.Operator, c.paused)
	if r.s.manual {
		r.manual = map[*longshore.Delivery]*item{}
	}
	r.base, r.baseCancel = context.WithCancelCause(context.Background())
	r.settle, r.settleEnd = context.WithCancel(context.Background())
	r.hard, r.hardCancel = context.WithCancel(context.Background())
	r.open, r.openCancel = context.WithCancel(context.Background())
	return r
}

// now is the time on the way of each message: of the system's two clocks it reads
// one, the monotonic, which is half the price. Its wall part goes on from the
// start of the run.
func (r *engine) now() time.Time {
	if r.s.system {
		return r.tick.began.Add(time.Since(r.tick.began))
	}
	return r.s.clock.Now()
}

// wake lets the supervisor look at everything again.
func (r *engine) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// changed tells whoever waits for something to end; the caller holds mu.
func (r *engine) changed() {
	if r.axes.Sub == state.Retained {
		r.wake() // there may be room to subscribe again
	}
	if r.axes.Stopping() {
		close(r.nudge)
		r.nudge = make(chan struct{})
	}
}

// after returns a channel that is closed in d, and a function that gives it up.
func (r *engine) after(d time.Duration) (<-chan struct{}, func()) {
	ch := make(chan struct{})
	t := r.s.clock.AfterFunc(max(d, 0), func() { close(ch) })
	return ch, func() { t.Stop() }
}

// until is a context that ends at t by the container's clock.
func (r *engine) until(t time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := r.s.clock.AfterFunc(max(t.Sub(r.s.clock.Now()), 0), func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}
