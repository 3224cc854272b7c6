package container

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// brokerDelay is the shortest delay worth a journey to the broker and back.
const brokerDelay = time.Second

// releaseHere is the longest delay of a release that waits here where the broker
// counts returns, far below any broker's patience.
const releaseHere = time.Minute

// holdAgain is how long the broker is not asked again to hold a retry after it could
// not: asking may take a worker as long as publishing may.
const holdAgain = 5 * time.Second

// outageShare is the share of failures above which it is not the messages' fault.
const outageShare = 0.75

// redeliver lets a delivery be delivered again, not before the judgement's delay:
// by the broker where it can hold the message and nothing must be overtaken, else
// parked here, without a worker and without a slot.
func (r *engine) redeliver(w *worker, it *item, j judgement, attempt int) {
	caps := it.gen.caps
	r.mu.Lock()
	stopping := r.leavesNow(it)
	torn := r.sched.Torn(&it.Item)
	full := r.parkingFull()
	outage := r.count.vitals.share > outageShare
	cannot := !full && !stopping && j.end.Before(r.delayed.holdsFrom)
	r.mu.Unlock()
	holds := !it.Ordered() && caps.Delay && !cannot
	if caps.CountsReturns && j.verdict == longshore.VerdictRelease && j.delay <= releaseHere && !stopping {
		holds = false // a return may cost what a release must not, however many wait here
	}
	j.delay = r.cut(it, j.delay, holds)
	counts := caps.Attempts || j.verdict == longshore.VerdictRelease
	switch {
	case stopping, torn, holds && counts && j.delay >= brokerDelay, holds && full:
		if r.giveBack(w, it, j, attempt, holds) {
			return
		}
		j.delay = r.cut(it, j.delay, false)
	case full && !outage && j.verdict == longshore.VerdictRetry && r.terms.policy != DeadLetterKeep:
		// No room to wait, and others succeed: better early in the dead-letter place than
		// holding them up. Where nearly all fail it would empty the queue into that place,
		// and help nobody: then the intake waits.
		j.verdict = longshore.VerdictReject
		r.log.failed(it.d, j, r.terms.policy) // the event of a retry is out already, and this may be a discard
		r.moveToDeadLetter(w, it, j)
		return
	}
	r.park(w, it, j, attempt)
}

// leavesNow says that what comes back goes to the broker, because we stop. While received
// work is worked off, a lane's head waits here like always: were it given back, its
// followers would overtake it. So does what comes behind others of its batch that wait
// here: they go back first. The caller holds mu.
func (r *engine) leavesNow(it *item) bool {
	if it.leaving {
		return !it.Returns()
	}
	return r.axes.Stopping() && (r.axes.Stop >= state.ReturnOnly || !it.Ordered()) && !it.Returns()
}

// cut shortens a delay to what broker or lease allow.
func (r *engine) cut(it *item, d time.Duration, holds bool) time.Duration {
	limit := keepLimit(it.gen.caps)
	if holds {
		limit = it.gen.caps.MaxDelay
	}
	if limit <= 0 || d <= limit {
		return d
	}
	if it.dead == nil {
		r.emit(Event{Kind: EventDelayCut, Delay: limit, Delivery: factsOf(it.d),
			Text: fmt.Sprintf("delay %v cut to %v, the longest that %q can be held", d, limit, r.s.name)})
	}
	return limit
}

// giveBack returns the delivery to the broker. It reports false if that could not be
// done and the delivery is still ours: forgotten now, it would stay unsettled until the
// consumer's end.
func (r *engine) giveBack(w *worker, it *item, j judgement, attempt int, holds bool) bool {
	delay := j.delay
	if !holds {
		delay = 0
	}
	nack := func() error {
		if delay == 0 && r.leaves(it) {
			return nil
		}
		return it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt})
	}
	err, stopping := nack(), r.isStopping()
	if err != nil && stopping && delay > 0 && it.d.Owned() { // too early is better than not at all
		delay = 0
		err = nack()
	}
	switch {
	case err == nil:
		due := j.end.Add(delay)
		if g := it.gen; g != nil && g.caps.Partitions {
			due = j.end // a log holds nothing back: the next owner of the partition reads it at once
		}
		r.returned(j, due)
	case !stopping && it.d.Owned():
		r.cannotHold(err)
		return false
	default:
		j.verdict = r.refused(it, longshore.VerbNack, err)
	}
	r.done(w, it, j)
	return true
}

// cannotHold notes that the broker could not take a retry: it, and the next ones, wait
// here.
func (r *engine) cannotHold(err error) {
	if errors.Is(err, longshore.CodeUnsupported) {
		return
	}
	r.mu.Lock()
	r.delayed.holdsFrom = r.now().Add(holdAgain)
	r.mu.Unlock()
	r.notice(err, "the broker cannot hold a retry now; it waits here")
}

func (r *engine) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.axes.Stopping()
}

// returned counts what a drain gave back.
func (r *engine) returned(j judgement, due time.Time) {
	r.mu.Lock()
	if due.After(r.delayed.until) {
		r.delayed.until = due
	}
	r.delayed.add(due, j.end)
	if r.reporting() {
		r.log.drained(tally{released: 1})
	}
	r.mu.Unlock()
}

// parkingFull says whether the space for waiting retries is used up. The caller
// holds mu.
func (r *dispatcher) parkingFull() bool {
	full, n := r.sched.RetriesFull(), r.sched.Retries().N
	if full && !r.parkFull {
		r.emit(Event{Kind: EventParkingFull, Count: n,
			Text: fmt.Sprintf("%d retries wait, as many as Redelivery.Parked allows; new failures go to the broker or the dead-letter place early, and while nearly all fail nothing more is received", n)})
	}
	if full || n < r.s.parked*9/10 {
		r.parkFull = full
	}
	return full
}

// park puts the delivery aside until its time has come. With an order the lane
// waits with it.
func (r *engine) park(w *worker, it *item, j judgement, attempt int) {
	next, err := it.d.Again(attempt)
	if err != nil {
		j.verdict = r.refused(it, longshore.VerbNack, err)
		r.done(w, it, j)
		return
	}
	r.log.outcome(it, j)
	r.settledNow(it, j)
	if it.permit {
		r.s.gate.Release()
	}
	r.mu.Lock()
	r.endDelivery(w, j)
	if j.verdict == longshore.VerdictRelease {
		it.releases++
	}
	it.d, it.permit = next, false
	it.notes.Store(nil)
	if (it.leaving || r.axes.Stopping() && r.axes.Stop >= state.ReturnOnly) && !it.Returns() { // it began after we looked
		r.mu.Unlock()
		r.release(it, attempt)
		return
	}
	it.Apart, it.Alone = it.dead != nil, it.alone()
	r.sched.Park(&it.Item, j.end.Add(j.delay))
	r.noteParked()
	r.goesOn()
	r.wakeOne()
	r.mu.Unlock()
}

// release gives one back uncounted that is still marked as running.
func (r *engine) release(it *item, attempt int) {
	var err error
	if !r.leaves(it) {
		err = it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbNack, Attempt: attempt})
	}
	verdict := longshore.VerdictRelease
	if err != nil { // before finish: the item is used again from there on
		verdict = r.refused(it, longshore.VerbNack, err)
	}
	r.mu.Lock()
	if err == nil && r.reporting() {
		r.log.drained(tally{released: 1})
	}
	r.count.verdicts[verdict]++
	r.finish(it)
	r.wakeOne()
	r.mu.Unlock()
}

// armPark sets the timer to the first that is due. The caller holds mu.
func (r *dispatcher) armPark() {
	due, ok := r.sched.NextDue()
	if !ok {
		return
	}
	if r.parkTimer != nil {
		if !due.Before(r.parkArmed) {
			return
		}
		r.parkTimer.Stop()
	}
	r.parkArmed = due
	r.parkTimer = r.s.clock.AfterFunc(max(due.Sub(r.s.clock.Now()), 0), r.parkDue)
}

func (r *dispatcher) parkDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parkTimer = nil
	if r.endWorkers() {
		return
	}
	r.sched.Wake(r.s.clock.Now())
	r.moveDue()
	r.armBatch()
	r.armPark()
	r.wakeOne()
}
