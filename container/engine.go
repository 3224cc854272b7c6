package container

import (
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/state"
)

// engine is one life of a container, from Start to the end of its drain. It wires the
// parts together. Late callbacks hold the engine and not the container, so they cannot
// touch the next one.
type engine struct {
	*dispatcher // what one lock guards
	calls       // to the transport

	c *ListenerContainer // its handlers, middlewares and observers

	life       *lifetimes    // how long each thing may go on
	supervisor *supervisor   // keeps the subscription
	receiver   *receiver     // takes in what the consumer brings
	holds      *holds        // follows what keeps work from starting
	drain      *drain        // ends the run
	ended      chan struct{} // closed at the end
	scaler     *scaler       // measures, and moves the number of workers and the window
	settler    *settler      // ends handler calls
	caller     *caller       // runs handlers
	returner   *returner     // gives deliveries back, and ends lost ones
}

func newRun(c *ListenerContainer) *engine {
	life := newLifetimes(c.set.clock, c.set.grace)
	d := newDispatcher(newEventLog(c), c.workers)
	r := &engine{dispatcher: d, calls: calls{c.set.clock, c.set.name, c.set.about.Name, life.open},
		c: c, life: life, ended: make(chan struct{})}
	if cy, ok := c.set.policy.(autoscale.Cycler); ok {
		cycles := cy.Cycles()
		d.load.cycles.of = &cycles
		d.hand.pool.byTurns = d.load.cycles.exact()
	}
	d.sub.opensPaused = c.src.Capabilities().OpensPaused
	d.axes.Holds = state.None.With(state.Operator, c.paused)
	d.hand.gate.doubts = c.hooks.doubts
	dead := newDeadLetters(c.set, c.src, life)
	pool, intake, gate := &d.hand.pool, &d.hand.intake, &d.hand.gate
	done := &concluder{d.common, d.log, &d.axes, &d.hand, pool, &d.held, &d.load, &d.count}
	r.settler = newSettler(c, d.log, gate, done, dead, life)
	r.caller = &caller{d.common, done, &d.hand, pool, &d.held, &d.load.calls, r.settler}
	r.settler.owner = r.caller
	r.returner = &returner{done, r.settler}
	d.held.moves.run = func() { r.settler.retryDeadLetters(d.takeDue) }
	r.receiver = &receiver{d.common, &d.axes, &d.sub, &d.hand, &d.held, &d.count, &d.load.cycles, r.returner, dead}
	r.holds = &holds{common: d.common, axes: &d.axes, sub: &d.sub, hand: &d.hand, intake: intake, gate: gate, stock: &d.held, pending: &d.pending}
	gate.opened = r.holds.gateOpened
	r.drain = &drain{common: d.common, calls: r.calls, log: d.log, axes: &d.axes, sub: &d.sub, hand: &d.hand, pool: pool, intake: intake,
		gate: gate, held: &d.held, load: &d.load, count: &d.count, life: life, recv: r.receiver, back: r.returner, dead: dead}
	r.scaler = &scaler{common: d.common, calls: r.calls, axes: &d.axes, sub: &d.sub, hand: &d.hand, pool: pool, intake: intake, gate: gate,
		held: &d.held, load: &d.load, count: &d.count, pending: &d.pending, policy: c.set.policy.New(),
		monitor: &monitor{common: d.common, hand: &d.hand, pool: pool, held: &d.held, sub: &d.sub, load: &d.load, count: &d.count}}
	seen := observer{d.common, d.log, &d.axes, &d.sub, &d.count, r.receiver, r.returner, nil}
	r.supervisor = &supervisor{common: d.common, calls: r.calls, log: d.log, axes: &d.axes, sub: &d.sub, pending: &d.pending, hand: &d.hand,
		pool: pool, intake: intake, held: &d.held, src: c.src, dead: dead, base: life.base, checks: c.hooks.checks,
		startup: &startup{done: make(chan struct{})}, reports: len(c.hooks.operators) > 0,
		observe: seen.of, recv: r.receiver, back: r.returner, upkeep: r.scaler}
	pool.run = (&runner{d.common, &d.axes, &d.hand, &d.held, &d.load.cycles, r.receiver, r.caller}).run
	intake.fetch = r.receiver.fetch
	return r
}

// current returns the run that goes on, or the last one; nil: there was none.
func (c *ListenerContainer) current() *engine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur
}

// start begins the run's goroutines.
func (r *engine) start() {
	stopPump, pumped := make(chan struct{}), make(chan struct{})
	go func() {
		r.c.hub.pump(stopPump)
		close(pumped)
	}()
	stopCalls := r.c.callOnEvent()
	r.emit(Event{Kind: EventState, Text: string(StateStarting)})
	go func() {
		stopHolds, stopGate := r.holds.watch(r.c.hooks.watchers, r.c.hooks.names), r.hand.gate.watch()
		r.scaler.arm()
		r.scaler.armCapacity()
		r.supervisor.run()
		stopHolds()
		r.drain.run(stopGate) // the gate goes on opening while received work is worked off
		close(stopPump)
		<-pumped
		stopCalls()
		r.c.mu.Lock()
		done := r.c.done
		r.c.mu.Unlock()
		r.supervisor.startup.decide(errStopped(r.s.name)) // where it was not decided before
		close(r.ended)
		close(done)
	}()
}

// callOnEvent runs the user's function on a goroutine of its own.
func (c *ListenerContainer) callOnEvent() (stop func()) {
	if c.set.onEvent == nil {
		return func() {}
	}
	events, end := c.Events(onEventQueue)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for e := range events {
			c.set.onEvent(e)
		}
	}()
	return func() { end(); <-gone }
}

// over says that the run has ended.
func (r *engine) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}
