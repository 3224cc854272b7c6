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
func (r *engine) cutOff() {
	r.mu.Lock()
	r.life.cutHandlers(r.sched.Active())
	r.mu.Unlock()
	r.waitFor(r.life.workEnd, func() bool { return r.sched.Active() == 0 })
	r.releaseReady()
}

// giveUp flushes and closes, counts what is left behind and ends the workers.
func (r *engine) giveUp(g *generation) {
	var errs []error
	gens := append([]*generation{}, r.sub.old...)
	if g != nil {
		gens = append(gens, g)
	}
	r.mu.Lock()
	flushEnd, closeEnd := r.life.lastSteps(r.s.clock.Now())
	r.mu.Unlock()
	for _, o := range gens {
		if r.alive(o) {
			errs = append(errs, r.callUntil(flushEnd, o.c.Flush))
		}
	}
	r.mu.Lock()
	flushErr := errors.Join(errs...)
	rep := r.abandoned()
	r.axes = r.axes.Forward(state.Closing)
	r.wakeOne()
	r.mu.Unlock()
	for _, o := range gens {
		ctx, cancel := r.until(closeEnd)
		err := r.close(ctx, o)
		cancel()
		errs = append(errs, err)
		r.loseAll(o)
		if err != nil { // what failed to arrive is reported by the transport's own goroutine
			r.mu.Lock()
			left := r.life.left(r.s.clock.Now())
			r.mu.Unlock()
			late, done := r.after(min(20*time.Millisecond, left))
			<-late
			done()
		}
	}
	r.life.endSettle()
	r.unwatchGate()
	r.closePublisher()
	r.stopTimers()
	gone := false
	r.waitFor(func() time.Time { return r.life.end }, func() bool {
		gone = len(r.pool.workers) == 0 && !r.undertaking && !r.intake.fetching
		return gone
	})
	if gone { // else a handler did not return, and the report says so
		r.pool.wg.Wait()
	}
	r.conclusion(rep, flushErr, errors.Join(errs...))
}

// reporting says that what becomes of a delivery now is counted in the report. When
// what is left has been counted, closing only gives that back. The caller holds mu.
func (r *engine) reporting() bool { return r.axes.Stopping() && r.axes.Stop < state.Closing }

// abandoned begins the report, and counts what is left: closing gives back what
// follows a handler that does not return. The caller holds mu.
func (r *engine) abandoned() *Report {
	rep := &Report{Container: r.s.name, Started: r.life.begun, Budget: r.life.soft.Sub(r.life.begun)}
	name := func(it *item) {
		if len(rep.AbandonedIDs) < 10 {
			rep.AbandonedIDs = append(rep.AbandonedIDs, it.identity())
		}
	}
	rep.Abandoned = r.sched.Active()
	for _, why := range []dispatch.Standing{dispatch.Open, dispatch.Hung, dispatch.Lost} {
		r.log.drained(tally{released: r.sched.Behind(why).N})
	}
	for _, it := range r.manual {
		name(it)
	}
	for _, w := range r.pool.workers {
		if w.it != nil && r.manual == nil {
			name(w.it)
		}
		for _, it := range w.batch {
			name(it)
		}
	}
	return rep
}

// conclusion completes the report and tells of it.
func (r *engine) conclusion(rep *Report, flushErr, err error) {
	r.mu.Lock()
	t := r.log.drainTally()
	now := r.s.clock.Now()
	rep.Took, rep.Delayed = now.Sub(r.life.begun), r.delayed.count(now)
	rep.Completed, rep.Released, rep.Lost = t.completed, t.released, t.lost
	rep.Repeats = t.repeats
	rep.Unflushed, rep.UnflushedIDs, rep.Err = t.unflushed, t.unflushedIDs, err
	// What failed before the stop was told when it failed, and its messages have come
	// again: a flush that counts it once more has left nothing behind.
	stale := errors.Is(flushErr, longshore.CodeSettle) && len(r.log.counts().settle) > 0
	if flushErr != nil && rep.Unflushed == 0 && !stale {
		rep.Unflushed = 1 // at least one: the transport did not say which
	}
	failed := r.axes.Sub == state.Failed
	if !failed {
		r.stopping.report = rep
	}
	r.axes, r.tick.buffered = r.axes.Forward(state.Stopped), 0
	r.mu.Unlock()
	if !failed {
		r.emit(Event{Kind: EventDrained, Report: rep, Text: rep.String()})
	}
	r.emit(Event{Kind: EventState, Text: string(StateStopped)})
}

// closePublisher closes the publisher for dead letters if we opened it.
func (r *engine) closePublisher() {
	r.terms.mu.Lock()
	pub := r.terms.pub
	r.terms.pub = nil
	r.terms.mu.Unlock()
	if pub != nil {
		if err := r.callUntilLost(r.life.hard, pub.Close); err != nil {
			r.notice(err, "closing the dead-letter publisher failed")
		}
	}
}

// stopTimers ends what could still call back.
func (r *engine) stopTimers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.life.stopTimers()
	for _, t := range []longshore.Timer{r.parkTimer, r.linger.timer, r.gateAgain, r.tick.timer, r.tick.capa.timer, r.sub.timer, r.stay.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// result is what Stop returns.
func (r *engine) result() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping.report != nil && r.stopping.report.Bad() {
		return &DrainError{Report: r.stopping.report, wanted: r.s.drain}
	}
	return nil
}
