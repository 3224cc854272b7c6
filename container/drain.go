package container

import (
	"time"

	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// stop asks the run to drain. From this moment nothing new starts, except where
// the broker counts what is given back: there what was received is worked off. A
// single active consumer, which has its role to the end, receives nothing more.
// Called again it can only shorten the time.
func (r *engine) stop(soft, hard time.Time) {
	r.mu.Lock()
	if r.axes.Stop == state.NoStop {
		g := r.sub.gen
		r.axes = r.axes.Forward(r.axes.StopWith(g != nil && g.caps.CountsReturns))
		if g != nil && (!r.axes.Starts() || g.caps.SingleActive) {
			g.interrupt()
		}
		r.log.drainBegins()
		r.emit(Event{Kind: EventState, Text: string(StateDraining)})
	}
	r.life.beginStop(soft, hard)
	r.changed()
	r.wakeOne()
	r.mu.Unlock()
	r.wake()
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

// drain ends the run, within its deadline whatever the broker does.
func (r *engine) drain() {
	r.mu.Lock()
	if r.axes.Sub == state.Failed {
		now := r.s.clock.Now()
		r.life.beginStop(now, now.Add(r.s.grace))
		r.axes = r.axes.Forward(state.ReturnOnly)
	}
	g := r.sub.gen
	last := g != nil && g.caps.SingleActive
	r.mu.Unlock()

	if g != nil && !last {
		r.cancelIntake(g)
	}
	r.awaitWork(last)
	if last { // the role moves on only when nothing of ours runs any more
		r.cancelIntake(g)
	}
	r.cutOff()
	r.giveUp(g)
}

// cancelIntake ends the subscription and gives back what was not started.
func (r *engine) cancelIntake(g *generation) {
	r.mu.Lock()
	g.canceled = true
	if g.asOne() && g.down == nil {
		out := r.sched.TakeWaiting() // what the transport has goes back when it is closed, with all else
		r.mu.Unlock()
		r.abandonUnstarted(out)
		return
	}
	off := r.axes.Stop == state.FinishWork && r.s.clock.Now().Before(r.life.soft)
	until := r.life.soft
	if !off {
		until = r.life.end
		r.axes = r.axes.Forward(state.ReturnOnly)
		g.interrupt()
	}
	if off && g.ctx.Err() != nil { // paused until now
		g.rearm(r.life.base)
	}
	r.mu.Unlock()
	if err := r.callUntil(until, g.c.Cancel); err != nil && r.alive(g) {
		r.notice(err, "cancelling the consumer failed")
	}
	r.mu.Lock()
	r.wakeOne()
	r.mu.Unlock()
	if off {
		return // workers receive what is buffered, until ErrCanceled
	}
	r.returnBuffer(g)
}

func (r *engine) alive(g *generation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.down == nil
}

// returnBuffer gives back what the transport holds. With an order the followers
// of a running head must not be given to another consumer before it ends: so what
// is buffered is received and sorted into the lanes. Where nothing moves before
// Close (partitions), that is not needed.
func (r *engine) returnBuffer(g *generation) {
	sort := r.s.ordered && !g.caps.HeadOfLineBlocking
	if sort && r.alive(g) {
		r.sortBuffer(g)
	}
	// What is older goes back first, else another consumer could be given the
	// buffer before it, and a quorum queue would keep them in that order.
	r.releaseReady()
	if sort && r.alive(g) {
		_ = r.callUntilLost(r.life.hard, g.c.Flush) // the last flush reports what is missing
	}
	if err := r.callUntilLost(r.life.hard, g.c.Release); err != nil && r.alive(g) {
		r.notice(err, "giving back what was buffered failed")
	}
}

// sortBuffer receives what is buffered while something runs that it may have to
// follow. A receive that was interrupted ends before: what it brings is older. Neither
// waits for anybody, so they have their time also where the drain's is over.
func (r *engine) sortBuffer(g *generation) {
	until := r.s.clock.Now().Add(r.s.grace)
	r.waitFor(func() time.Time { return earlier(until, r.life.workEnd()) }, func() bool { return !r.intake.receiving })
	r.mu.Lock()
	needed := r.sched.Active() > 0
	until = earlier(until, r.life.workEnd())
	r.mu.Unlock()
	if needed {
		r.pull(g, until)
	}
}

// pull receives what is buffered after Cancel.
func (r *engine) pull(g *generation, until time.Time) {
	ctx, cancel := r.until(until)
	defer cancel()
	for {
		ds, err := g.c.Receive(ctx, maxFree)
		keys := r.keys(ds)
		r.mu.Lock()
		r.accept(g, ds, keys)
		r.armBatch() // a hold leaves it here, and more may not come
		r.mu.Unlock()
		if err != nil || len(ds) == 0 {
			return
		}
	}
}

// awaitWork waits until nothing runs, or the drain's time is over. Followers whose
// head has ended meanwhile are given back.
func (r *engine) awaitWork(holdBack bool) {
	for {
		if !holdBack {
			r.releaseReady()
		}
		r.mu.Lock()
		if r.worked() {
			over := holdBack || !r.leftover()
			if over {
				r.axes = r.axes.Forward(state.ReturnOnly)
			}
			r.mu.Unlock()
			if over {
				return
			}
			break
		}
		nudge, end := r.stopping.nudge, r.life.soft
		r.mu.Unlock()
		if !r.awaitChange(nudge, end) {
			break
		}
	}
	r.mu.Lock()
	off := r.axes.Stop == state.FinishWork
	r.axes = r.axes.Forward(state.ReturnOnly)
	g := r.sub.gen
	if g != nil {
		g.interrupt()
	}
	r.mu.Unlock()
	switch {
	case holdBack:
	case off && g != nil: // what was not worked off
		r.returnBuffer(g)
	default:
		r.releaseReady()
	}
}

// worked says whether everything that is to be worked on has been. The caller
// holds mu.
func (r *engine) worked() bool {
	g := r.sub.gen
	last := g != nil && g.caps.SingleActive
	switch {
	case r.sched.Active() > 0, last && r.intake.receiving: // interrupted; it may bring something yet
		return false
	case r.axes.Stop >= state.ReturnOnly:
		return true
	case r.undertaking:
		return false
	}
	// Work that waits, for its next attempt, a permit or a breaker, holds up nothing.
	return !r.intake.receiving && !r.startable() && !r.mayReceive()
}

// leftover says whether something is held that was not worked off. The caller holds mu.
func (r *engine) leftover() bool {
	return r.axes.Stop < state.ReturnOnly && (r.sched.Total().N > 0 || r.more())
}

// more says whether the transport may still hand out what it had received. The
// caller holds mu.
func (r *engine) more() bool {
	g := r.sub.gen
	return g != nil && g.down == nil && !g.exhausted && !g.caps.SingleActive
}

// awaitChange waits for a change; false when end is reached.
func (r *engine) awaitChange(nudge <-chan struct{}, end time.Time) bool {
	left := end.Sub(r.s.clock.Now())
	if left <= 0 {
		return false
	}
	timeout, stop := r.after(left)
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
func (r *engine) waitFor(end func() time.Time, cond func() bool) {
	for {
		r.mu.Lock()
		ok, nudge, limit := cond(), r.stopping.nudge, end()
		r.mu.Unlock()
		if ok || !r.awaitChange(nudge, limit) {
			return
		}
	}
}

// releaseReady gives back, uncounted, everything that waits and must not start:
// what is ready with the followers in its lane, and what is parked. Followers of a
// running head stay until it ends.
func (r *engine) releaseReady() {
	r.releaseOrphans()
	r.mu.Lock()
	var out []*dispatch.Item[item]
	switch {
	case r.axes.Stop >= state.ReturnOnly:
		out = r.sched.TakeWaiting()
	case !r.more(): // else followers of what is parked may still come
		out = r.sched.TakeParked()
	}
	if r.axes.Stop < state.ReturnOnly {
		r.wakeOne()
	}
	r.mu.Unlock()
	r.releaseAll(out)
}
