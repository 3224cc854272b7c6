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
	r.life.baseCancel(longshore.ErrStopping)
	r.mu.Lock()
	rest := r.s.grace
	if r.sched.Active() == 0 { // of the time for handlers, none needs it
		rest = max(rest, lastAnswer)
	}
	r.armHard(earlier(r.life.hardEnd, r.s.clock.Now().Add(rest)))
	r.mu.Unlock()
	r.waitFor(func() time.Time { return r.life.hardEnd.Add(-r.reserve()) }, func() bool { return r.sched.Active() == 0 })
	r.releaseReady()
}

// lastAnswer is the time for the last steps where all handlers have returned, as far as
// the drain's own allows: a broker that is far away, throttles or chooses another leader
// needs seconds, and what it does not confirm is done twice. It is not all that is left
// of the drain's time, since a broker that is gone uses up whatever it is given.
const lastAnswer = 5 * time.Second

// giveUp flushes and closes, counts what is left behind and ends the workers.
func (r *engine) giveUp(g *generation) {
	var errs []error
	gens := append([]*generation{}, r.sub.old...)
	if g != nil {
		gens = append(gens, g)
	}
	flushEnd, closeEnd := r.lastSteps()
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
			late, done := r.after(min(20*time.Millisecond, r.left()))
			<-late
			done()
		}
	}
	r.life.settleEnd()
	r.unwatchGate()
	r.closePublisher()
	r.stopTimers()
	gone := false
	r.waitFor(func() time.Time { return r.life.hardEnd }, func() bool {
		gone = len(r.pool.workers) == 0 && !r.undertaking && !r.intake.fetching
		return gone
	})
	if gone { // else a handler did not return, and the report says so
		r.pool.wg.Wait()
	}
	r.conclusion(rep, flushErr, errors.Join(errs...))
}

// left is the time until everything must be over.
func (r *engine) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life.hardEnd.Sub(r.s.clock.Now())
}

// lastSteps divides what is left: a broker that does not confirm must leave time
// for closing, and closing for hearing what was not confirmed.
func (r *engine) lastSteps() (flushEnd, closeEnd time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := max(r.life.hardEnd.Sub(r.s.clock.Now()), 0)
	return r.life.hardEnd.Add(-left / 4), r.life.hardEnd.Add(-left / 8)
}

// reporting says that what becomes of a delivery now is counted in the report. When
// what is left has been counted, closing only gives that back. The caller holds mu.
func (r *engine) reporting() bool { return r.axes.Stopping() && r.axes.Stop < state.Closing }

// abandoned begins the report, and counts what is left: closing gives back what
// follows a handler that does not return. The caller holds mu.
func (r *engine) abandoned() *Report {
	rep := &Report{Container: r.s.name, Started: r.life.stopAt, Budget: r.life.drainEnd.Sub(r.life.stopAt)}
	name := func(it *item) {
		if len(rep.AbandonedIDs) < 10 {
			rep.AbandonedIDs = append(rep.AbandonedIDs, it.identity())
		}
	}
	rep.Abandoned = r.sched.Active()
	for _, why := range []dispatch.Standing{dispatch.Open, dispatch.Hung, dispatch.Lost} {
		r.stopping.tally.released += r.sched.Behind(why).N
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
	t := r.stopping.tally
	now := r.s.clock.Now()
	rep.Took, rep.Delayed = now.Sub(r.life.stopAt), r.delayed.count(now)
	rep.Completed, rep.Released, rep.Lost = t.completed, t.released, t.lost
	rep.Repeats = t.repeats
	rep.Unflushed, rep.UnflushedIDs, rep.Err = t.unflushed, t.unflushedIDs, err
	// What failed before the stop was told when it failed, and its messages have come
	// again: a flush that counts it once more has left nothing behind.
	stale := errors.Is(flushErr, longshore.CodeSettle) && len(r.count.settle) > 0
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
	for _, t := range []longshore.Timer{r.parkTimer, r.linger.timer, r.gateAgain, r.tick.timer, r.tick.capa.timer, r.sub.timer, r.stay.timer, r.life.hardTimer, r.life.settleTimer} {
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
