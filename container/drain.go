package container

import (
	"time"

	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// drain ends a run, within its deadlines whatever the broker does.
type drain struct {
	*dispatcher
	calls

	life *lifetimes // how long each step may take
	recv *receiver  // sorts what is buffered into the lanes
	back requeuer
}

// begin lets the run drain. From this moment nothing new starts, except where the broker
// counts what is given back: there what was received is worked off. A single active
// consumer, which has its role to the end, receives nothing more. Called again it can
// only shorten the time.
func (d *drain) begin(soft, hard time.Time) {
	d.mu.Lock()
	first := d.axes.Stop == state.NoStop
	if g := d.sub.gen; first {
		d.log.drainBegins()
		d.axes = d.axes.Forward(d.axes.StopWith(g != nil && g.caps.CountsReturns))
		if g != nil && (!d.axes.Starts() || g.caps.SingleActive) {
			g.interrupt()
		}
	}
	d.life.beginStop(soft, hard)
	if first {
		d.emit(Event{Kind: EventState, Text: string(StateDraining)})
	}
	d.changed()
	d.wakeOne()
	d.mu.Unlock()
	d.wake()
}

// run takes the steps of a stop. stopGate is called when no work waits for the gate any
// more.
func (d *drain) run(stopGate func()) {
	d.mu.Lock()
	if d.axes.Sub == state.Failed {
		now := d.s.clock.Now()
		d.life.beginStop(now, now.Add(d.s.grace))
		d.axes = d.axes.Forward(state.ReturnOnly)
	}
	g := d.sub.gen
	last := g != nil && g.caps.SingleActive
	d.mu.Unlock()

	if g != nil && !last {
		d.cancelIntake(g)
	}
	d.awaitWork(last)
	if last { // the role moves on only when nothing of ours runs any more
		d.cancelIntake(g)
	}
	d.cutOff()
	d.giveUp(stopGate)
}

// cancelIntake ends the subscription and gives back what was not started.
func (d *drain) cancelIntake(g *generation) {
	d.mu.Lock()
	g.forward(stageCanceled)
	if g.asOne() && !g.isDown() {
		out := d.sched.TakeWaiting() // what the transport has goes back when it is closed, with all else
		d.mu.Unlock()
		d.abandonUnstarted(out)
		return
	}
	until := d.life.soft
	off := d.axes.Stop == state.FinishWork && d.s.clock.Now().Before(until)
	if off {
		g.rearm() // it may be paused until now
	} else {
		until = d.life.end
		d.axes = d.axes.Forward(state.ReturnOnly)
		g.interrupt()
	}
	d.mu.Unlock()
	if err := d.callUntil(until, g.c.Cancel); err != nil && d.alive(g) {
		d.notice(err, "cancelling the consumer failed")
	}
	d.mu.Lock()
	d.wakeOne()
	d.mu.Unlock()
	if off {
		return // workers receive what is buffered, until ErrCanceled
	}
	d.returnBuffer(g)
}

// returnBuffer gives back what the transport holds. With an order the followers
// of a running head must not be given to another consumer before it ends: so what
// is buffered is received and sorted into the lanes. Where nothing moves before
// Close (partitions), that is not needed.
func (d *drain) returnBuffer(g *generation) {
	sort := d.s.ordered && !g.caps.HeadOfLineBlocking
	if sort && d.alive(g) {
		d.sortBuffer(g)
	}
	// What is older goes back first, else another consumer could be given the
	// buffer before it, and a quorum queue would keep them in that order.
	d.releaseReady()
	if sort && d.alive(g) {
		_ = d.callUntilLost(d.life.hard, g.c.Flush) // the last flush reports what is missing
	}
	if err := d.callUntilLost(d.life.hard, g.c.Release); err != nil && d.alive(g) {
		d.notice(err, "giving back what was buffered failed")
	}
}

// sortBuffer receives what is buffered while something runs that it may have to
// follow. A receive that was interrupted ends before: what it brings is older. Neither
// waits for a handler, so they have their time also where the drain's is over.
func (d *drain) sortBuffer(g *generation) {
	until := d.s.clock.Now().Add(d.s.grace)
	end := func() time.Time { return earlier(until, d.life.workEnd()) }
	d.waitFor(end, func() bool { return !d.intake.under() })
	d.mu.Lock()
	needed := d.sched.Active() > 0
	until = end()
	d.mu.Unlock()
	if needed {
		ctx, cancel := d.until(until)
		defer cancel()
		d.recv.pull(ctx, g)
	}
}

// awaitWork waits until nothing runs, or the drain's time is over. Followers whose
// head has ended meanwhile are given back, unless they have to wait for the end.
func (d *drain) awaitWork(holdBack bool) {
	for {
		if !holdBack {
			d.releaseReady()
		}
		d.mu.Lock()
		done := d.worked()
		if done && (holdBack || !d.leftover()) {
			d.axes = d.axes.Forward(state.ReturnOnly)
			d.mu.Unlock()
			return
		}
		nudge, end := d.stopping.nudge, d.life.soft
		d.mu.Unlock()
		if done || !d.awaitChange(nudge, end) {
			break
		}
	}
	d.mu.Lock()
	off := d.axes.Stop == state.FinishWork
	d.axes = d.axes.Forward(state.ReturnOnly)
	g := d.sub.gen
	if g != nil {
		g.interrupt()
	}
	d.mu.Unlock()
	switch {
	case holdBack:
	case off && g != nil: // what was not worked off
		d.returnBuffer(g)
	default:
		d.releaseReady()
	}
}

// worked says whether everything that is to be worked on has been.
func (d *drain) worked() bool {
	g := d.sub.gen
	switch {
	case d.sched.Active() > 0, g != nil && g.caps.SingleActive && d.intake.under(): // interrupted; it may bring something yet
		return false
	case d.axes.Stop >= state.ReturnOnly:
		return true
	case d.movingDead:
		return false
	}
	// Work that waits, for its next attempt, a permit or a breaker, holds up nothing.
	return d.intake.by == nobodyReceives && !d.startable() && !d.mayReceive()
}

// leftover says whether something is held that was not worked off.
func (d *drain) leftover() bool {
	return d.axes.Stop < state.ReturnOnly && (d.sched.Total().N > 0 || d.more())
}

// more says whether the transport may still hand out what it had received.
func (d *drain) more() bool {
	g := d.sub.gen
	return g != nil && g.delivers() && !g.caps.SingleActive
}

// releaseReady gives back, uncounted, everything that waits and must not start:
// what is ready with the followers in its lane, and what is parked. Followers of a
// running head stay until it ends.
func (d *drain) releaseReady() {
	d.back.releaseOrphans()
	d.mu.Lock()
	var out []*dispatch.Item[item]
	switch {
	case d.axes.Stop >= state.ReturnOnly:
		out = d.sched.TakeWaiting()
	case !d.more(): // else followers of what is parked may still come
		out = d.sched.TakeParked()
	}
	if d.axes.Stop < state.ReturnOnly {
		d.wakeOne()
	}
	d.mu.Unlock()
	d.back.releaseAll(out)
}
