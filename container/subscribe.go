package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// subscribe opens the source.
func (v *supervisor) subscribe() {
	var g *generation
	var opts transport.OpenOptions
	v.locked(func() {
		g = &generation{id: v.sub.gens + 1, base: v.base, window: request{n: v.hand.wantedWindow()}, workers: request{n: v.pool.places()}}
		opts = v.s.wishes(v.pool.max)
		if v.sub.opensPaused && v.axes.Holds != state.None { // a hold may have begun since it was decided to open
			g.flow = flowBornPaused
		}
		opts.Base, opts.Window, opts.Workers, opts.Paused = v.base, g.window.n, g.workers.n, g.flow == flowBornPaused //nolint:fatcontext // the run's, one for each subscription
	})
	o := v.observe(g)
	opts.Observer = o
	if v.reports {
		opts.Operations.To = o
	}
	ctx, cancel := context.WithTimeout(v.opening, openTimeout)
	defer cancel()
	c, err := v.open(ctx, v.src, opts)
	if err != nil {
		v.openFailed(err)
		return
	}
	g.c, g.caps = c, v.src.Capabilities()
	if cr, ok := c.(transport.CapabilityReporter); ok {
		g.caps = cr.Capabilities()
	}
	if err = v.check(ctx, g); err != nil {
		v.closeSoon(g)
		v.openFailed(err)
		return
	}
	v.subscribed(g)
}

// check asks everything that may have something against this consumer.
func (v *supervisor) check(ctx context.Context, g *generation) error {
	policy, err := v.s.terminal(g.caps)
	if err != nil {
		return err
	}
	if policy == DeadLetterKeep && v.s.dead.Policy == Default && g.id == 1 {
		v.notice(nil, "no dead-letter destination is known: messages that fail for the last time are kept and tried again at Redelivery.Backoff.Max; set DeadLetter")
	}
	if text := limitNotice(v.s, g.caps, policy); text != "" && g.id == 1 {
		v.notice(nil, text)
	}
	v.dead.setPolicy(policy)
	facts := longshore.Facts{Container: v.s.name, Order: v.s.order.String(), Batch: v.s.batch,
		Manual: v.s.manual, DrainTimeout: v.s.drain, Capabilities: g.caps}
	v.locked(func() { facts.WorkersMax = v.pool.max })
	var errs []error
	for _, k := range v.checks {
		errs = append(errs, k.Check(ctx, facts))
	}
	return errors.Join(errs...)
}

// subscribed lets deliveries of the new generation in.
func (v *supervisor) subscribed(g *generation) {
	var as state.Axes
	v.locked(func() { as = v.axes.Axes })
	as.Sub = state.Open
	pause := as.PausesTransport(g.traits())
	if as.Stopping() {
		v.closeSoon(g)
		return
	}
	paused := flowPaused
	if pause && g.flow == flowOn { // held since it began to open
		paused = v.callPauser(g, true)
	}
	if t, ok := g.c.(transport.Tagged); ok {
		g.tag = t.ConsumerTag()
	}
	prefetch := 0
	if p, ok := g.c.(transport.Prefetcher); ok {
		prefetch = p.Prefetch()
	}
	v.locked(func() {
		if pause {
			g.pause(paused) // a resume is the supervisor's next step
		}
		v.enter(g, pause)
		live, window, took := v.pool.target, v.s.window(v.pool.target), g.since.Sub(v.sub.downAt)
		v.emit(Event{Kind: EventSubscribed, Generation: g.id, Workers: live, Window: window, Prefetch: prefetch, ConsumerTag: g.tag, Took: took, Reason: v.dead.place(),
			Text: fmt.Sprintf("subscribed after %v, generation %d, %d workers, window %d", round(took), g.id, live, window)})
		v.emit(Event{Kind: EventState, Text: string(v.hand.reported())})
	})
	v.startup.decide(nil)
}

// enter puts a generation into use.
func (v *supervisor) enter(g *generation, paused bool) {
	g.since = v.s.clock.Now()
	g.fresh = g.since
	v.pending.stay = paused
	g.rearm()
	if v.axes.Holds.Has(state.Operator) {
		g.interrupt()
	}
	v.sub.opened(g)
	v.axes.Sub = state.Open
	v.held.sched.LimitAside(asideSpace(g.caps, v.s.window(v.pool.max)))
	if g.isDown() { // it ended before it was ours
		v.axes.Sub = state.Lost
	}
	v.hand.setTarget(v.pool.target)
}

// openFailed decides what a failed opening means.
func (v *supervisor) openFailed(err error) {
	if v.opening.Err() != nil {
		return // Stop ended it
	}
	first := !v.startup.isDecided()
	now := v.s.clock.Now()
	if first && fatal(err) {
		v.locked(func() {
			v.sub.failed(now, err, rnd())
			v.axes.Sub = state.Failed
		})
		v.startup.fail(err)
		return
	}
	var delay time.Duration
	var attempt int
	v.locked(func() {
		delay = v.sub.failed(now, err, rnd())
		attempt = v.sub.tries + 1
		v.sub.arm(delay)
	})
	v.emit(Event{Kind: EventDown, Err: err, Delay: delay, Attempt: attempt,
		Text: fmt.Sprintf("%v; trying again in %v (attempt %d)", err, round(delay), attempt)})
	if first && !v.s.wait {
		v.unsubscribed()
	}
}

// unsubscribed lets Start return though nothing can be received yet: the broker cannot
// be reached, or a middleware holds the intake, and it is not known for how long.
func (v *supervisor) unsubscribed() {
	v.locked(func() {
		if v.axes.Sub = state.Lost; v.axes.Holds != state.None {
			v.axes.Sub = state.Suspended
		}
		v.hand.setTarget(v.pool.target)
		v.emit(Event{Kind: EventState, Text: string(v.hand.reported())})
	})
	v.startup.decide(nil)
}

// fatal errors fail the first start: waiting would not cure them.
func fatal(err error) bool {
	var e *longshore.Error
	if !errors.As(err, &e) {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	switch e.Code {
	case longshore.CodeUnreachable, longshore.CodeConnLost, longshore.CodeTimeout, longshore.CodeBlocked,
		longshore.CodeExclusive, longshore.CodeCanceledBy, longshore.CodeFenced:
		return false
	}
	return true
}

// startup is how the first start of a run went. Only the goroutine of the supervisor
// writes it; err is read by others after done is closed.
type startup struct {
	done chan struct{} // closed when the start is decided
	err  error         // why it failed; nil: it did not
}

// fail keeps the error with which the start will be decided, when the run has ended.
func (s *startup) fail(err error) { s.err = err }

// decide lets Start return. An error that is known already stays.
func (s *startup) decide(err error) {
	if s.isDecided() {
		return
	}
	if s.err == nil {
		s.err = err
	}
	close(s.done)
}

func (s *startup) isDecided() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
