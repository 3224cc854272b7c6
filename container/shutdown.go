package container

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// cutOff ends the contexts of handlers that still run, and waits for them as long
// as flushing and closing still find time.
func (d *drain) cutOff() {
	d.locked(func() { d.life.cutHandlers(d.held.sched.Active()) })
	d.waitFor(d.life.workEnd, func() bool { return d.held.sched.Active() == 0 })
	d.releaseReady()
}

// giveUp flushes, closes, counts the deliveries that are left behind, and ends the workers.
func (d *drain) giveUp(stopGate func()) {
	gens := d.sub.all() // the supervisor, which changes them, has ended
	var flushEnd, closeEnd time.Time
	d.locked(func() { flushEnd, closeEnd = d.life.lastSteps(d.s.clock.Now()) })
	flushErr := d.flush(gens, flushEnd)
	var rep *Report
	d.locked(func() {
		rep = d.abandoned()
		d.axes.forward(state.Closing)
		d.hand.wakeOne()
	})
	err := errors.Join(flushErr, d.close(gens, closeEnd))
	d.life.endSettle()
	stopGate()
	d.closePublisher()
	d.stopTimers()
	gone := false
	d.waitFor(func() time.Time { return d.life.end }, func() bool {
		gone = len(d.pool.workers) == 0 && !d.held.moves.on && !d.intake.fetches()
		return gone
	})
	if gone { // else a handler did not return, and the report says so
		d.pool.wg.Wait()
	}
	d.conclude(rep, flushErr, err)
}

// flush waits until the broker has confirmed what was settled.
func (d *drain) flush(gens []*generation, end time.Time) error {
	var errs []error
	for _, g := range gens {
		if d.alive(g) {
			errs = append(errs, d.callUntil(end, g.c.Flush))
		}
	}
	return errors.Join(errs...)
}

// close closes the consumers; what they still hold is lost.
func (d *drain) close(gens []*generation, end time.Time) error {
	var errs []error
	for _, g := range gens {
		ctx, cancel := d.until(end)
		err := closeConsumer(ctx, d.calls, g)
		cancel()
		errs = append(errs, err)
		d.back.loseAll(g)
		if err != nil { // what failed to arrive is reported by the transport's own goroutine
			var left time.Duration
			d.locked(func() { left = d.life.left(d.s.clock.Now()) })
			late, done := after(d.s.clock, min(20*time.Millisecond, left))
			<-late
			done()
		}
	}
	return errors.Join(errs...)
}

// abandoned begins the report with the handlers that have not returned, and with their
// followers, which closing gives back.
func (d *drain) abandoned() *Report {
	rep := &Report{Container: d.s.name, Started: d.life.begun, Budget: d.life.soft.Sub(d.life.begun)}
	name := func(it *item) {
		if len(rep.AbandonedIDs) < 10 {
			rep.AbandonedIDs = append(rep.AbandonedIDs, it.identity())
		}
	}
	rep.Abandoned = d.held.sched.Active()
	for _, why := range []dispatch.Standing{dispatch.Open, dispatch.Hung, dispatch.Lost} {
		d.log.drained(tally{released: d.held.sched.Behind(why).N})
	}
	for _, it := range d.held.manual {
		name(it)
	}
	for _, w := range d.pool.workers {
		if w.it != nil && d.held.manual == nil {
			name(w.it)
		}
		for _, it := range w.batch {
			name(it)
		}
	}
	return rep
}

// conclude completes the report and emits it.
func (d *drain) conclude(rep *Report, flushErr, err error) {
	failed := false
	d.locked(func() { failed = d.completeLocked(rep, flushErr, err) })
	if !failed {
		d.emit(Event{Kind: EventDrained, Report: rep, Text: rep.String()})
	}
	d.emit(Event{Kind: EventState, Text: string(StateStopped)})
}

// completeLocked fills in the report and ends the run. failed says that the run failed to
// start, which needs no report.
func (d *drain) completeLocked(rep *Report, flushErr, err error) (failed bool) {
	now := d.s.clock.Now()
	rep.Took, rep.Delayed, rep.Err = now.Sub(d.life.begun), d.count.delayed.count(now), err
	// A settlement that failed before the stop was reported at that time, and its message was
	// redelivered: a flush that reports it once more has left nothing behind.
	stale := errors.Is(flushErr, longshore.CodeSettle) && len(d.log.counts().settle) > 0
	t := d.log.drainTally()
	t.fill(rep, flushErr != nil && !stale)
	if failed = d.axes.Sub == state.Failed; !failed {
		d.report = rep
	}
	d.axes.forward(state.Stopped)
	d.load.backlog.buffered = 0
	return failed
}

// fill writes what was counted into the report. unflushed: something was not confirmed,
// at least one, where the transport did not say which.
func (t *tally) fill(rep *Report, unflushed bool) {
	rep.Completed, rep.Released, rep.Lost, rep.Repeats = t.completed, t.released, t.lost, t.repeats
	rep.Unflushed, rep.UnflushedIDs = t.unflushed, t.unflushedIDs
	if unflushed {
		rep.Unflushed = max(rep.Unflushed, 1)
	}
}

// closePublisher closes the publisher for dead letters if we opened it.
func (d *drain) closePublisher() {
	if pub := d.dead.takePublisher(); pub != nil {
		if err := d.callUntilLost(d.life.hard, pub.Close); err != nil {
			d.notice(err, "closing the dead-letter publisher failed")
		}
	}
}

// stopTimers ends what could still call back.
func (d *drain) stopTimers() {
	d.locked(d.endTimers)
}

// endTimers is stopTimers under the lock.
func (d *drain) endTimers() {
	d.life.stopTimers()
	for _, t := range []longshore.Timer{d.held.parking.timer, d.held.linger.timer, d.gate.again, d.load.tick, d.load.sampling, d.sub.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// result is what Stop returns.
func (d *drain) result() error {
	if rep := d.lastReport(); rep != nil && rep.Bad() {
		return &DrainError{Report: rep, wanted: d.s.drain}
	}
	return nil
}

// lastReport is the report of the stop that is over; nil: none is, or the run failed to
// start.
func (d *drain) lastReport() (rep *Report) {
	d.locked(func() { rep = d.report })
	return rep
}
