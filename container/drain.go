package container

import (
	"time"

	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// drain ends a run, within its deadlines whatever the broker does.
type drain struct {
	common
	calls // to the transport, each with a deadline

	log    *eventLog     // has the counts for the report
	axes   *axes         // the stop is one of them, and moves on here
	sub    *subscription // whose consumers it cancels, flushes and closes
	hand   *handout      // whether something may still start
	pool   *pool         // whose workers it waits for
	intake *intake       // a Receive under way may bring something yet
	gate   *gatekeeper   // its timer ends with the run
	held   *stock        // what has to be done, or given back
	load   *load         // its timers end with the run
	count  *counters     // how many wait at the broker, for the report
	life   *lifetimes    // how long each step may take
	recv   *receiver     // sorts what is buffered into the lanes
	back   *returner     // gives back what was not started
	dead   *deadLetters  // whose publisher is closed at the end

	report *Report // of the stop that is over; guarded by guard.mu
}

// begin starts the drain. From this moment no handler call starts, unless the broker counts
// returns: then the deliveries that were received are still handled. A single active
// consumer keeps its role to the end and receives nothing more. A second call can only
// shorten the time.
func (d *drain) begin(soft, hard time.Time) {
	d.locked(func() {
		first := d.axes.Stop == state.NoStop
		if g := d.sub.gen; first {
			d.log.drainBegins()
			d.axes.forward(d.axes.StopWith(g != nil && g.caps.CountsReturns))
			if g != nil && (!d.axes.Starts() || g.caps.SingleActive) {
				g.interrupt()
			}
		}
		d.life.beginStop(soft, hard)
		if first {
			d.emit(Event{Kind: EventState, Text: string(StateDraining)})
		}
		d.axes.changed()
		d.hand.wakeOne()
	})
	d.wake()
}

// run takes the steps of a stop. stopGate is called when no work waits for the gate any
// more.
func (d *drain) run(stopGate func()) {
	d.locked(func() {
		if d.axes.Sub == state.Failed {
			now := d.s.clock.Now()
			d.life.beginStop(now, now.Add(d.s.grace))
			d.axes.forward(state.ReturnOnly)
		}
	})
	g := d.sub.gen // the supervisor, which changes it, has ended
	last := g != nil && g.caps.SingleActive

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

// cancelIntake ends the subscription and gives back the deliveries that were not started.
func (d *drain) cancelIntake(g *generation) {
	var until time.Time
	var out []*dispatch.Item[item]
	var asOne, off bool
	d.locked(func() {
		g.forward(stageCanceled)
		if asOne = g.asOne() && !g.isDown(); asOne {
			out = d.held.sched.TakeWaiting() // what the transport has goes back when it is closed, with all else
			return
		}
		until = d.life.soft
		off = d.axes.Stop == state.FinishWork && d.s.clock.Now().Before(until)
		if off {
			g.rearm() // it may be paused until now
		} else {
			until = d.life.end
			d.axes.forward(state.ReturnOnly)
			g.interrupt()
		}
	})
	if asOne {
		d.back.abandonUnstarted(out)
		return
	}
	if err := d.callUntil(until, g.c.Cancel); err != nil && d.alive(g) {
		d.notice(err, "cancelling the consumer failed")
	}
	d.locked(d.hand.wakeOne)
	if off {
		return // workers receive what is buffered, until ErrCanceled
	}
	d.returnBuffer(g)
}

// returnBuffer gives back what the transport has buffered. With an order, the followers of
// a running delivery must not reach another consumer before it ends, so the buffer is first
// received and sorted into the lanes. Partitions do not need that: they move at Close.
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
	needed := false
	d.locked(func() { needed, until = d.held.sched.Active() > 0, end() })
	if needed {
		ctx, cancel := d.until(until)
		defer cancel()
		d.recv.pull(ctx, g)
	}
}

// awaitWork waits until no handler runs, or the drain's time is over. Followers whose head
// has ended meanwhile are given back, unless holdBack keeps them until the end.
func (d *drain) awaitWork(holdBack bool) {
	for {
		if !holdBack {
			d.releaseReady()
		}
		var done, over bool
		var nudge <-chan struct{}
		var end time.Time
		d.locked(func() {
			done, nudge, end = d.worked(), d.nudge, d.life.soft
			if over = done && (holdBack || !d.leftover()); over {
				d.axes.forward(state.ReturnOnly)
			}
		})
		if over {
			return
		}
		if done || !d.awaitChange(nudge, end) {
			break
		}
	}
	g, off := d.sub.gen, false
	d.locked(func() {
		off = d.axes.Stop == state.FinishWork
		d.axes.forward(state.ReturnOnly)
		if g != nil {
			g.interrupt()
		}
	})
	switch {
	case holdBack:
	case off && g != nil: // what was not worked off
		d.returnBuffer(g)
	default:
		d.releaseReady()
	}
}

// worked says whether the work that the stop waits for is done.
func (d *drain) worked() bool {
	g := d.sub.gen
	switch {
	case d.held.sched.Active() > 0, g != nil && g.caps.SingleActive && d.intake.under(): // interrupted; it may bring something yet
		return false
	case d.axes.Stop >= state.ReturnOnly:
		return true
	case d.held.moves.on:
		return false
	}
	// Work that waits, for its next attempt, a permit or a breaker, holds up nothing.
	return d.intake.by == noReceiver && !d.hand.startable() && !d.hand.mayReceive()
}

// leftover says whether deliveries are held that were not handled.
func (d *drain) leftover() bool {
	return d.axes.Stop < state.ReturnOnly && (d.held.sched.Total().N > 0 || d.more())
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
	var out []*dispatch.Item[item]
	d.locked(func() {
		if d.axes.Stop >= state.ReturnOnly {
			out = d.held.sched.TakeWaiting()
			return
		}
		if !d.more() { // else followers of what is parked may still come
			out = d.held.sched.TakeParked()
		}
		d.hand.wakeOne()
	})
	d.back.releaseAll(out)
}
