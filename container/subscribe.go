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
func (r *engine) subscribe() {
	r.mu.Lock()
	g := &generation{id: r.sub.gens + 1, asked: r.wantedWindow()}
	opts := r.s.wishes(r.pool.max)
	o := &observer{r, g}
	opts.Base, opts.Observer, opts.Window = r.life.base, o, g.asked
	opts.Paused = r.sub.opensPaused && r.axes.Holds != state.None // a hold may have begun since it was decided to open
	g.opened, g.paused = opts.Paused, opts.Paused
	r.mu.Unlock()
	if len(r.c.operators) > 0 {
		opts.Operations.To = o
	}
	ctx, cancel := context.WithTimeout(r.life.open, openTimeout)
	defer cancel()
	c, err := r.open(ctx, r.src, opts)
	if err != nil {
		r.openFailed(err)
		return
	}
	g.c, g.caps = c, r.src.Capabilities()
	if cr, ok := c.(transport.CapabilityReporter); ok {
		g.caps = cr.Capabilities()
	}
	if err = r.check(ctx, g); err != nil {
		r.closeSoon(g)
		r.openFailed(err)
		return
	}
	r.subscribed(g)
}

// check asks everybody who may have something against this consumer.
func (r *engine) check(ctx context.Context, g *generation) error {
	policy, err := r.s.terminal(g.caps)
	if err != nil {
		return err
	}
	if policy == DeadLetterKeep && r.s.dead.Policy == Default && g.id == 1 {
		r.notice(nil, "no dead-letter place is known: messages that fail for the last time are kept and tried again at Redelivery.Backoff.Max; set DeadLetter")
	}
	if text := r.limitNotice(g.caps, policy); text != "" && g.id == 1 {
		r.notice(nil, text)
	}
	r.mu.Lock()
	r.terms.policy = policy
	facts := longshore.Facts{Container: r.s.name, WorkersMax: r.pool.max, Order: r.s.order.String(), Batch: r.s.batch,
		Manual: r.s.manual, DrainTimeout: r.s.drain, Capabilities: g.caps}
	r.mu.Unlock()
	var errs []error
	for _, k := range r.c.checks {
		errs = append(errs, k.Check(ctx, facts))
	}
	return errors.Join(errs...)
}

// subscribed lets deliveries of the new generation in.
func (r *engine) subscribed(g *generation) {
	r.mu.Lock()
	if r.axes.Stopping() {
		r.mu.Unlock()
		r.closeSoon(g)
		return
	}
	subscribed := r.axes
	subscribed.Sub = state.Open
	pause := subscribed.PausesTransport(g.traits())
	r.mu.Unlock()
	if p, ok := g.c.(transport.Pauser); ok && pause && !g.paused { // held since it began to open
		if err := r.callBriefly(p.Pause); err != nil {
			r.notice(err, "pausing failed")
		}
	}
	r.mu.Lock()
	g.paused = g.paused || pause // a resume is the supervisor's next step
	g.since = r.s.clock.Now()
	g.fresh = g.since
	r.stay.due = pause
	g.rearm(r.life.base)
	if r.axes.Holds.Has(state.Operator) {
		g.interrupt()
	}
	r.sub.gen, r.axes.Sub, r.sub.lastErr = g, state.Open, nil
	r.sub.gens = g.id
	r.sched.LimitAside(r.asideSpace(g.caps))
	if g.down != nil { // it ended before it was ours
		r.axes.Sub = state.Lost
	}
	r.setTarget(r.pool.target)
	live, window, took := r.pool.target, r.s.window(r.pool.target), g.since.Sub(r.sub.downAt)
	r.emit(Event{Kind: EventSubscribed, Generation: g.id, Workers: live, Window: window, Took: took,
		Text: fmt.Sprintf("subscribed after %v, generation %d, %d workers, window %d", round(took), g.id, live, window)})
	r.emit(Event{Kind: EventState, Text: string(r.reported())})
	r.mu.Unlock()
	r.startDecided(nil)
}

// openFailed decides what a failed opening means.
func (r *engine) openFailed(err error) {
	if r.life.stopping() {
		return // Stop ended it
	}
	now := r.s.clock.Now()
	r.mu.Lock()
	first := !r.decided()
	r.sub.tries++
	delay := r.s.reopen.Delay(r.sub.tries, rnd())
	r.sub.reopenAt, r.sub.lastErr = now.Add(delay), err
	r.mu.Unlock()
	if first && fatal(err) {
		r.fail(err)
		return
	}
	r.armReopen(delay)
	r.emit(Event{Kind: EventDown, Err: err, Delay: delay, Attempt: r.sub.tries + 1,
		Text: fmt.Sprintf("%v; trying again in %v (attempt %d)", err, round(delay), r.sub.tries+1)})
	if first && !r.s.wait {
		r.unsubscribed()
	}
}

// unsubscribed lets Start return though nothing can be received yet: the broker cannot be
// reached, or a middleware holds the intake, and nobody knows for how long.
func (r *engine) unsubscribed() {
	r.mu.Lock()
	if r.axes.Sub = state.Lost; r.axes.Holds != state.None {
		r.axes.Sub = state.Suspended
	}
	r.setTarget(r.pool.target)
	r.emit(Event{Kind: EventState, Text: string(r.reported())})
	r.mu.Unlock()
	r.startDecided(nil)
}

// armReopen wakes the supervisor when it is to try again.
func (r *engine) armReopen(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sub.timer = r.s.clock.AfterFunc(delay, r.wake)
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

// fail ends the run before it began.
func (r *engine) fail(err error) {
	r.mu.Lock()
	r.startup.err, r.axes.Sub = err, state.Failed
	r.mu.Unlock()
}

// startDecided lets Start return. The supervisor calls it.
func (r *engine) startDecided(err error) {
	if r.decided() {
		return
	}
	r.mu.Lock()
	if r.startup.err == nil {
		r.startup.err = err
	}
	if r.startup.err == nil && r.axes.Stop == state.Stopped {
		r.startup.err = &longshore.Error{Code: longshore.CodeState, Source: r.s.name,
			Op: fmt.Sprintf("start container %q", r.s.name), Err: errors.New("it was stopped before it had subscribed")}
	}
	r.mu.Unlock()
	close(r.startup.decided)
}

func (r *engine) decided() bool {
	select {
	case <-r.startup.decided:
		return true
	default:
		return false
	}
}
