package container

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// steady is how long a subscription must last before the spacing of attempts
// begins anew: one that dies at once must not be reopened in a hot loop.
const steady = 10 * time.Second

// start begins the run's goroutines.
func (r *engine) start() {
	stopPump, pumped := make(chan struct{}), make(chan struct{})
	go func() {
		r.c.hub.pump(stopPump)
		close(pumped)
	}()
	stopCalls := r.callOnEvent()
	r.emit(Event{Kind: EventState, Text: string(StateStarting)})
	go func() {
		unwatch := r.watch()
		r.supervise(unwatch)
		close(stopPump)
		<-pumped
		stopCalls()
		r.c.mu.Lock()
		done := r.c.done
		r.c.mu.Unlock()
		r.startDecided(nil)
		close(r.ended)
		close(done)
	}()
}

// callOnEvent runs the user's function on a goroutine of its own.
func (r *engine) callOnEvent() (stop func()) {
	if r.s.onEvent == nil {
		return func() {}
	}
	events, end := r.c.Events(onEventQueue)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for e := range events {
			r.s.onEvent(e)
		}
	}()
	return func() { end(); <-gone }
}

// supervise is the one goroutine that changes the run's phase and its
// subscription. It looks at what is wished and what is, does one thing, and
// looks again.
func (r *engine) supervise(unwatch func()) {
	r.armTick()
	r.armCapacity()
	for {
		act := r.todo()
		if act == nil {
			<-r.kick
			continue
		}
		if !act() {
			break
		}
	}
	unwatch()
	r.drain()
}

// todo returns the next thing to do; nil: nothing now. What it returns reports
// false when the run is to end.
func (r *engine) todo() func() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.sub.gen
	switch {
	case r.axes.Stopping() || r.startup.err != nil:
		return func() bool { return false }
	case r.sched.Orphans() > 0:
		return func() bool { r.releaseOrphans(); return true }
	case g != nil && g.down != nil:
		return func() bool { r.failSubscription(g); return true }
	case g != nil && r.axes.Intake(g.traits()) == state.Away:
		return func() bool { r.suspend(g); return true }
	case r.axes.Sub == state.Starting && !r.axes.WantsSubscription(r.sub.opensPaused):
		return func() bool { r.unsubscribed(); return true }
	case g == nil && r.axes.WantsSubscription(r.sub.opensPaused) && !r.s.clock.Now().Before(r.sub.reopenAt) && !r.provided():
		return func() bool { r.subscribe(); return true }
	}
	for _, o := range r.sub.old {
		if o.Held() == 0 || o.down != nil {
			return func() bool { r.closeOld(o); return true }
		}
	}
	switch {
	case g != nil && g.paused != r.wantsPause(g):
		return func() bool { r.applyPause(g); return true }
	case g != nil && r.resizeDue:
		return func() bool { r.resize(g, r.s.clock.Now()); return true }
	case r.stay.due:
		return func() bool { r.yieldWhenDue(); return true }
	case r.tick.due:
		return func() bool { r.onTick(); return true }
	}
	return nil
}

// failSubscription gives up a consumer that is at its end. What it delivered is lost; what
// still runs keeps its lane until it returns.
func (r *engine) failSubscription(g *generation) {
	now := r.s.clock.Now()
	r.mu.Lock()
	r.sub.gen = nil
	err := g.down
	r.sub.lastErr, r.sub.downAt = err, now
	g.interrupt()
	if now.Sub(g.since) >= steady {
		r.sub.tries = 0
	}
	r.sub.tries++
	delay := r.s.reopen.Delay(r.sub.tries, rnd())
	r.sub.reopenAt = now.Add(delay)
	r.log.reopened(longshore.CodeOf(err))
	r.sub.standby, r.blocked = false, false
	if !r.axes.Stopping() {
		r.emit(Event{Kind: EventState, Text: string(StateRecovering)})
	}
	r.mu.Unlock()
	r.armReopen(delay)
	r.closeSoon(g)
	lost := r.loseAll(g)
	r.emit(Event{Kind: EventDown, Err: err, Delay: delay, Count: lost,
		Text: fmt.Sprintf("%v; subscribing again in %v", err, round(delay))})
}

// closeOld closes a cancelled consumer whose last delivery is settled.
func (r *engine) closeOld(g *generation) {
	r.mu.Lock()
	for i, o := range r.sub.old {
		if o == g {
			r.sub.old = append(r.sub.old[:i], r.sub.old[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	until := r.s.clock.Now().Add(r.s.grace)
	if r.alive(g) {
		if err := r.callUntil(until, g.c.Flush); err != nil {
			r.notice(err, "flushing a cancelled consumer failed")
		}
	}
	r.closeSoon(g)
	r.loseAll(g)
}

// close closes a consumer; a broker that does not answer cannot stop us.
func (r *engine) close(ctx context.Context, g *generation) error {
	err := r.callUntilLost(ctx, g.c.Close)
	if g.cancel != nil {
		g.cancel()
	}
	return err
}

// closeSoon closes one that is of no use any more.
func (r *engine) closeSoon(g *generation) {
	ctx, cancel := r.until(r.s.clock.Now().Add(r.s.grace))
	defer cancel()
	_ = r.close(ctx, g) // its deliveries are lost either way
}

// applyPause tells a consumer that can stop fetching.
func (r *engine) applyPause(g *generation) {
	r.mu.Lock()
	want := r.wantsPause(g)
	g.paused, g.opened = want, g.opened && want
	r.stay.due = want
	r.mu.Unlock()
	p, ok := g.c.(transport.Pauser)
	if !ok {
		return
	}
	call := p.Resume
	if want {
		call = p.Pause
	}
	if err := r.callBriefly(call); err != nil && !r.life.stopping() {
		r.notice(err, "pausing or resuming failed")
	}
}

func (r *engine) setPaused(on bool) {
	r.mu.Lock()
	if r.axes.Holds.Has(state.Operator) != on {
		r.axes.Holds = r.axes.Holds.With(state.Operator, on)
		if g := r.sub.gen; g != nil && !r.axes.Stopping() {
			if on {
				g.interrupt()
			} else {
				g.rearm(r.life.base)
			}
		}
		r.wakeOne()
		r.emit(Event{Kind: EventState, Text: string(r.reported())})
	}
	r.mu.Unlock()
	r.wake()
}

// reported is the state that the container reports. The caller holds mu.
func (r *engine) reported() State {
	return stateOf(r.axes.Report(r.sub.gen != nil && r.sub.gen.caps.KeepsPlace, r.provided()))
}

// markDown notes that a consumer is at its end. The caller holds mu.
func (r *engine) markDown(g *generation, err error) {
	if g.down != nil {
		return
	}
	g.down = err
	if g == r.sub.gen {
		r.axes.Sub = state.Lost
	}
}

// traits is what the intake depends on besides the axes.
func (g *generation) traits() state.Traits {
	return state.Traits{KeepsPlace: g.caps.KeepsPlace, ThrottlePauses: g.caps.LiveResize && g.caps.MaxLease == 0, OpenedPaused: g.opened}
}
