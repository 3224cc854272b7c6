package container

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// supervisor is the one goroutine that changes the subscription of a run. It looks at
// what is wanted and what is, does one thing, and looks again.
type supervisor struct {
	common
	calls // to the transport, each with a deadline

	log     *eventLog     // counts how often it had to open again
	axes    *axes         // what is wanted, and what is
	sub     *subscription // which only its goroutine changes
	pending *pending      // what others want of it
	hand    *handout      // what follows a subscription
	pool    *pool         // how many workers a window is for
	intake  *intake       // the Receive that a cancelled consumer waits for
	held    *stock        // what a consumer leaves behind

	src     transport.Source            // opened for each subscription
	base    context.Context             //nolint:containedctx // of handlers, for the consumers; lives and ends with its struct, not with a call
	checks  []longshore.Checker         // may refuse a consumer
	startup *startup                    // what Start waits for
	stay    stay                        // when a held consumer has to give up its place
	dead    *deadLetters                // learns the policy of each consumer
	observe func(*generation) *observer // makes what a consumer reports to
	reports bool                        // a middleware wants to know of the transport's operations
	recv    *receiver                   // takes in the buffer of a consumer that is cancelled
	back    *returner                   // gives back what a lost or cancelled consumer leaves here
	upkeep  *scaler                     // is called now and then
}

// run goes on until a stop begins or the first start has failed.
func (v *supervisor) run() {
	defer v.stay.end()
	for {
		var act func() bool
		v.locked(func() { act = v.todoLocked() })
		if act == nil {
			<-v.kick
			continue
		}
		if !act() {
			return
		}
	}
}

// todoLocked returns the next thing to do; nil: nothing now. The function that it returns
// reports false when the run is to end.
func (v *supervisor) todoLocked() func() bool {
	g, now := v.sub.gen, v.s.clock.Now()
	do := func(f func()) func() bool { return func() bool { f(); return true } }
	switch {
	case v.axes.Stopping() || v.axes.Sub == state.Failed:
		return func() bool { return false }
	case v.held.sched.Orphans() > 0:
		return do(v.back.releaseOrphans)
	case g != nil && g.isDown():
		return do(func() { v.fail(g) })
	case g != nil && v.axes.Intake(g.traits()) == state.Away:
		return do(func() { v.suspend(g) })
	case v.axes.Sub == state.Starting && !v.axes.WantsSubscription(v.sub.opensPaused):
		return do(v.unsubscribed)
	case g == nil && v.axes.WantsSubscription(v.sub.opensPaused) && v.sub.due(now) && !v.hand.provided():
		return do(v.subscribe)
	}
	if old := v.sub.settled(); old != nil {
		return do(func() { v.closeOld(old) })
	}
	switch {
	case g != nil && g.flow != flowUnknown && (g.flow != flowOn) != v.axes.PausesTransport(g.traits()):
		return do(func() { v.applyPause(g) })
	case v.pending.stay:
		return do(v.yieldWhenDue)
	case v.pending.tick && g != nil && g.flow == flowUnknown:
		return do(func() { v.applyPause(g); v.upkeep.onTick() })
	case v.pending.tick:
		return do(v.upkeep.onTick)
	// Behind the ticks, which resize too: a transport that is slow to resize must not keep them
	// from everything else that they look after.
	case g != nil && v.pending.resize:
		return do(func() { v.upkeep.resize(g, now) })
	}
	return nil
}

// fail gives up a consumer that is at its end. What it delivered is lost; what still
// runs keeps its lane until it returns.
func (v *supervisor) fail(g *generation) {
	now := v.s.clock.Now()
	v.locked(func() {
		g.interrupt()
		delay := v.sub.lost(now, g, rnd())
		v.log.reopened(longshore.CodeOf(g.err))
		if !v.axes.Stopping() {
			v.emit(Event{Kind: EventState, Text: string(StateRecovering)})
		}
		v.sub.arm(delay)
		// Before the consumer is closed, which takes seconds where nothing answers: the reason
		// belongs beside the state, and not behind what happens meanwhile.
		v.emit(Event{Kind: EventDown, Err: g.err, Delay: delay, Count: g.Held(),
			Text: fmt.Sprintf("%v; subscribing again in %v", g.err, round(delay))})
	})
	v.closeSoon(g)
	v.back.loseAll(g)
}

// closeOld closes a cancelled consumer whose last delivery is settled.
func (v *supervisor) closeOld(g *generation) {
	v.locked(func() { v.sub.forget(g) })
	if v.alive(g) {
		if err := v.callUntil(v.soon(), g.c.Flush); err != nil {
			v.notice(err, "flushing a cancelled consumer failed")
		}
	}
	v.closeSoon(g)
	v.back.loseAll(g)
}

// soon is until when calls may take that give a consumer up.
func (v *supervisor) soon() time.Time { return v.s.clock.Now().Add(v.s.grace) }

// closeSoon closes a consumer that is of no use any more.
func (v *supervisor) closeSoon(g *generation) {
	ctx, cancel := v.until(v.soon())
	defer cancel()
	_ = closeConsumer(ctx, v.calls, g) // its deliveries are lost either way
}

// closeConsumer closes a consumer; a broker that does not answer cannot stop us.
func closeConsumer(ctx context.Context, c calls, g *generation) error {
	err := c.callUntilLost(ctx, g.c.Close)
	g.interrupt()
	return err
}

// applyPause lets the transport stop or resume fetching.
func (v *supervisor) applyPause(g *generation) {
	var want bool
	v.locked(func() {
		want = v.axes.PausesTransport(g.traits())
		v.pending.stay = want
	})
	now := v.callPauser(g, want)
	v.locked(func() { g.pause(now) })
}

// callPauser pauses or resumes the transport and returns whether it takes messages now. A
// resume that failed and was not repeated would leave a container that counts as running and
// receives nothing.
func (v *supervisor) callPauser(g *generation, pause bool) flow {
	result, what := flowOn, "resuming"
	if pause {
		result, what = flowPaused, "pausing"
	}
	p, ok := g.c.(transport.Pauser)
	if !ok {
		return result
	}
	call := p.Resume
	if pause {
		call = p.Pause
	}
	if err := v.callBriefly(call); err != nil {
		if v.opening.Err() == nil {
			v.notice(err, what+" the consumer failed; it will be tried again")
		}
		return flowUnknown
	}
	return result
}
