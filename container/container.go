package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// ListenerContainer consumes from one source: it receives, runs the handler on a
// pool of workers that follows the load, settles by the handler's result, and
// keeps the subscription alive until it is stopped. All methods are safe for
// concurrent use and idempotent.
type ListenerContainer struct {
	src     transport.Source       // opened again after each loss
	set     *settings              // the checked configuration
	handler longshore.Handler      // the chain for single deliveries; nil with batches
	batch   longshore.BatchHandler // the chain for batches; nil without them
	hooks   hooks                  // the middlewares that want more than the handler's calls
	hub     *eventHub              // delivers events to subscribers and the log
	asked   requestedVerdict       // verdicts that handlers requested by a verb

	mu      sync.Mutex // guards what follows
	cur     *engine    // the current or last run; nil before the first
	workers Workers    // the bounds in force, which Scale changes and the next run keeps
	paused  bool       // by an operator; the next run keeps it
	// pausedBy says who paused it; zero while nothing is paused.
	pausedBy longshore.Intervention
	done     chan struct{} // of the current run, or of the next if none was started
}

// New makes a container for a handler of single deliveries. It does no I/O. The
// error joins everything that is wrong with the configuration.
func New(src transport.Source, h longshore.Handler, cfg Config) (*ListenerContainer, error) {
	c, err := build(src, cfg, h == nil, false)
	if err != nil {
		return nil, err
	}
	c.handler = longshore.Chain(c.asked.tells(h), cfg.Middleware...)
	if p, ok := src.(transport.Preparer); ok {
		c.handler = prepared(p, c.handler)
	}
	return c, nil
}

// NewBatch makes a container for a handler of several deliveries at once, of at
// most Config.Batch.Size. Deliveries of one lane come in order.
func NewBatch(src transport.Source, h longshore.BatchHandlerFunc, cfg Config) (*ListenerContainer, error) {
	c, err := build(src, cfg, h == nil, true)
	if err != nil {
		return nil, err
	}
	c.batch = c.asked.tellsBatch(plainSuccess(h))
	for i := len(cfg.Middleware) - 1; i >= 0; i-- {
		if m, ok := cfg.Middleware[i].(longshore.BatchWrapper); ok { // checked above
			c.batch = m.WrapBatch(c.batch)
		}
	}
	if p, ok := src.(transport.Preparer); ok {
		c.batch = preparedBatch(p, c.batch)
	}
	return c, nil
}

func build(src transport.Source, cfg Config, noHandler, batch bool) (*ListenerContainer, error) {
	var errs []error
	if src == nil {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "make a container", Err: errors.New("the source is nil")})
	}
	if noHandler {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "make a container", Err: errors.New("the handler is nil")})
	}
	if src == nil {
		return nil, errors.Join(errs...)
	}
	s, w, err := resolve(src, cfg, batch)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	c := &ListenerContainer{src: src, set: s, hooks: hooksOf(cfg.Middleware), workers: w, paused: cfg.StartPaused, done: make(chan struct{})}
	if cfg.StartPaused {
		c.pausedBy.By = "Config.StartPaused"
	}
	c.hub = newEventHub(s.name, newLimitedLog(s))
	for _, text := range s.warnings {
		c.hub.log.event(Event{Time: s.clock.Now(), Kind: EventNotice, Text: text})
	}
	return c, nil
}

// Name returns Config.Name, or the source's.
func (c *ListenerContainer) Name() string { return c.set.name }

// Source returns what it consumes from.
func (c *ListenerContainer) Source() transport.Source { return c.src }

// StopBudget is the longest time that Stop takes: DrainTimeout and CancelGrace.
func (c *ListenerContainer) StopBudget() time.Duration { return c.set.drain + c.set.grace }

// Start subscribes and returns when deliveries can flow. A missing queue, refused
// credentials or a wrong declaration fail it. A broker that cannot be reached does
// not: the container is then live, not ready, and goes on trying, unless
// Config.WaitForBroker, with which Start waits until ctx ends and fails. If no one
// has answered by then the error has CodeUnreachable. Nor does a middleware that holds
// the intake from the beginning, as a breaker that is open: Start returns, and the source
// is opened when the hold is over. ctx bounds the start only.
// On a running container it does nothing; after Stop it begins a new run.
func (c *ListenerContainer) Start(ctx context.Context) error {
	for {
		r, fresh, ended := c.begin() //nolint:contextcheck // a run outlives the call that starts it
		if fresh {
			r.start() //nolint:contextcheck // a run outlives the call that starts it
		}
		if !ended {
			return c.awaitStart(ctx, r)
		}
		select { // an earlier run drains
		case <-r.ended:
		case <-ctx.Done():
			return &longshore.Error{Code: longshore.CodeState, Source: c.set.name, Op: fmt.Sprintf("start container %q", c.set.name),
				Err: fmt.Errorf("its last run still drains: %w", context.Cause(ctx))}
		}
	}
}

// begin returns the run to wait for; ended says that it is on its way out.
func (c *ListenerContainer) begin() (r *engine, fresh, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur != nil {
		if !c.cur.over() {
			return c.cur, false, c.cur.isStopping()
		}
		c.done = make(chan struct{})
	}
	c.cur = newRun(c)
	return c.cur, true, false
}

func (c *ListenerContainer) awaitStart(ctx context.Context, r *engine) error {
	select {
	case <-r.supervisor.startup.done:
		return r.supervisor.startup.err
	case <-ctx.Done():
	}
	select {
	case <-r.supervisor.startup.done:
		return r.supervisor.startup.err
	default:
	}
	var last error
	r.locked(func() { last = r.sub.lastErr })
	r.drain.begin(r.s.clock.Now(), r.s.clock.Now().Add(r.s.grace))
	<-r.ended
	return notStarted(ctx, c.set, last)
}

// Stop drains: nothing new starts, running handlers finish, what was not started
// goes back to the broker, settlements are flushed, the consumer is closed. It takes
// at most StopBudget, less if ctx has an earlier deadline; a ctx that is cancelled
// ends the waiting for handlers at once. The result is nil, or a *DrainError if
// anything was abandoned or not flushed. Report has the details either way.
func (c *ListenerContainer) Stop(ctx context.Context) error {
	r := c.current()
	if r == nil {
		return nil
	}
	now := r.s.clock.Now()
	soft, hard := now.Add(r.s.drain), now.Add(r.s.drain+r.s.grace)
	if d, ok := ctx.Deadline(); ok {
		if left := time.Until(d); now.Add(left).Before(hard) {
			hard = now.Add(max(left, 0))
			soft = now.Add(handlersShare(left, r.s.drain, r.s.grace))
		}
	}
	r.drain.begin(soft, hard)
	select {
	case <-r.ended:
	case <-ctx.Done():
		now = r.s.clock.Now()
		r.drain.begin(now, earlier(hard, now.Add(r.s.grace)))
		<-r.ended
	}
	return r.drain.result()
}

// Run starts, waits until ctx ends or the container does, and stops.
func (c *ListenerContainer) Run(ctx context.Context) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-c.Done():
	}
	return c.Stop(context.WithoutCancel(ctx))
}

// Pause takes nothing more from the broker until Resume. What was received is
// worked off; membership and leases are kept. Where the broker takes back what is
// unsettled for too long, what the transport had received goes back before that.
func (c *ListenerContainer) Pause() { c.PauseBy(longshore.Intervention{}) }

// PauseBy is Pause with who does it and why, for Why to name. A zero Since is now.
func (c *ListenerContainer) PauseBy(i longshore.Intervention) {
	if i.Since.IsZero() {
		i.Since = c.set.clock.Now()
	}
	c.mu.Lock()
	c.pausedBy = i
	c.mu.Unlock()
	c.setPaused(true)
}

// Resume ends a pause.
func (c *ListenerContainer) Resume() {
	c.mu.Lock()
	c.pausedBy = longshore.Intervention{}
	c.mu.Unlock()
	c.setPaused(false)
}

func (c *ListenerContainer) setPaused(on bool) {
	c.mu.Lock()
	c.paused = on
	r := c.cur
	c.mu.Unlock()
	if r != nil {
		r.holds.pause(on)
	}
}

// Scale changes the bounds of the workers, now and for later runs. Zero means
// what it means in Config.Workers. A run that is draining keeps the workers it has:
// then the bounds are those of the next one.
func (c *ListenerContainer) Scale(lo, hi int) error {
	p := problemsOf(c.set.name)
	p.number("min", lo, 0, maxWorkers)
	p.number("max", hi, 0, maxWorkers)
	w := Workers{lo, hi}.filled()
	if w.Min > w.Max {
		p.Range("min", w.Min, "at most {max}, which is %d", w.Max)
	}
	if err := p.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	c.workers = w
	r := c.cur
	c.mu.Unlock()
	if r != nil {
		r.scaler.bounds(w)
	}
	return nil
}

// State returns what the container does.
func (c *ListenerContainer) State() (now State) {
	r := c.current()
	if r == nil {
		return StateNew
	}
	r.locked(func() { now = r.hand.reported() })
	return now
}

// Done returns a channel that is closed when the current run ends; before the
// first Start, when the first run ends.
func (c *ListenerContainer) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// Report returns how the last drain went; nil if there was none.
func (c *ListenerContainer) Report() *Report {
	r := c.current()
	if r == nil {
		return nil
	}
	return r.drain.lastReport()
}

// DrainReport is the report in one line, "" if there is none.
func (c *ListenerContainer) DrainReport() string {
	if rep := c.Report(); rep != nil {
		return rep.String()
	}
	return ""
}
