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

// engine is one life of a container, from Start to the end of its drain. It wires the
// parts together. Late callbacks hold the engine and not the container, so they cannot
// touch the next one.
type engine struct {
	*dispatcher
	calls // to the transport

	c   *ListenerContainer
	src transport.Source

	life        *lifetimes       // how long each thing may go on
	startup     startup          // whether the first start has been decided, and how
	ended       chan struct{}    // closed at the end
	loops       loops            // messages that are released again and again
	scaler      autoscale.Scaler // decides how many workers there should be; called by the supervisor only
	unwatchGate func()
}

// startup is how the first start went.
type startup struct {
	decided chan struct{} // closed when the first start is decided
	err     error         // its error; read after decided
}

// pool is the workers. Guarded by engine.mu.
type pool struct {
	workers   []*worker
	idle      []*worker // the hottest last
	live      int       // workers, retiring ones not counted
	target    int
	min, max  int
	replacing int // extra workers for stuck ones
	standIns  standIns
	waking    bool
	wg        sync.WaitGroup // workers
}

// intake is who receives. Guarded by engine.mu.
type intake struct {
	receiving   bool
	slow        bool                   // receives take long
	buffered    bool                   // they take next to nothing
	fetching    bool                   // a goroutine receives beside the workers
	receiver    *generation            // of the Receive that runs
	receiverCtx context.Context        //nolint:containedctx // lives and ends with its struct, not with a call
	entering    []*dispatch.Item[item] // scratch of whoever receives
}

// linger is the time for which a batch waits to fill. Guarded by engine.mu.
type linger struct {
	due   bool
	timer longshore.Timer
	armed bool
}

// subscription is the consumers, and when to open the next one. Guarded by engine.mu.
type subscription struct {
	opensPaused bool          // the source can be opened without taking anything
	gen         *generation   // nil: not subscribed
	old         []*generation // cancelled, with deliveries still out
	gens        int

	tries    int
	downAt   time.Time // of the last loss; before the first subscription, of the start
	reopenAt time.Time
	timer    longshore.Timer
	lastErr  error
	standby  bool
}

// holdReasons are why middlewares hold the intake, by watcher. Guarded by engine.mu.
type holdReasons struct {
	reasons map[int]string
	since   time.Time // the first of them came
}

// stay is the time after which a hold gives the consumer's place up. Guarded by engine.mu.
type stay struct {
	due   bool // look whether a hold outlasts the lease
	timer longshore.Timer
}

// shutdown is what a stop waits for and reports. Guarded by engine.mu.
type shutdown struct {
	nudge  chan struct{} // closed and replaced when something ends, while somebody waits
	report *Report
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
	life := newLifetimes(c.set.clock, c.set.grace)
	r := &engine{life: life, calls: calls{c.set.clock, c.set.name, c.set.about.Name, life.open},
		dispatcher: newDispatcher(newEventLog(c), c.workers), c: c, src: c.src,
		startup: startup{decided: make(chan struct{})}, ended: make(chan struct{}),
		scaler: c.set.policy.New()}
	if cy, ok := c.set.policy.(autoscale.Cycler); ok {
		cycles := cy.Cycles()
		r.tick.cycles.of = &cycles
	}
	r.sub.opensPaused = c.src.Capabilities().OpensPaused
	r.axes.Holds = state.None.With(state.Operator, c.paused)
	return r
}
