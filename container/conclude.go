package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// What a settler has carried out changes what is held, under the one lock: this file has
// the changes. They implement ender, parker and mover.

// done implements ender.
func (r *dispatcher) done(w *worker, it *item, j judgement) {
	r.mu.Lock()
	r.conclude(w, it, j)
	r.wakeOne()
	r.mu.Unlock()
}

// conclude counts a verdict and lets the item go.
func (r *dispatcher) conclude(w *worker, it *item, j judgement) {
	if j.unstarted {
		r.count.verdicts[j.verdict]++
	} else {
		r.endDelivery(w, j)
	}
	if j.returned {
		r.delayed.add(j.end.Add(j.delay), j.end)
	}
	if r.reporting() {
		r.tally(j)
	}
	if !j.unstarted && (j.verdict == longshore.VerdictLost || j.comesBack() && r.sched.Torn(&it.Item)) {
		r.sched.Orphan(&it.Item)
		r.orphaned()
	}
	r.finish(it)
}

// tally counts for the report of a drain.
func (r *dispatcher) tally(j judgement) {
	switch {
	case j.returned:
		r.log.drained(tally{released: 1})
	case j.final():
		r.log.drained(tally{completed: 1})
	}
}

// standing implements parker.
func (r *dispatcher) standing(it *item) standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := standing{torn: r.sched.Torn(&it.Item), full: r.parkingFull(), outage: r.count.vitals.share > outageShare,
		draining: r.axes.Stopping()}
	st.closes = st.draining && r.axes.Stop >= state.ReturnOnly && it.gen.asOne()
	// While a stop works off what was received, a lane's head waits here like always: given
	// back, its followers would overtake it. So does what comes behind others of its batch
	// that wait here: they go back first.
	st.leaves = !it.Returns() && (it.leaving || st.draining && (r.axes.Stop >= state.ReturnOnly || !it.Ordered()))
	return st
}

// park implements parker.
func (r *dispatcher) park(w *worker, it *item, next *longshore.Delivery, j judgement) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endDelivery(w, j)
	if j.verdict == longshore.VerdictRelease {
		it.releases++
	}
	it.d = next
	it.notes.Store(nil)
	if (it.leaving || r.axes.Stopping() && r.axes.Stop >= state.ReturnOnly) && !it.Returns() { // it began after we looked
		return false
	}
	it.Apart, it.Alone = it.dead != nil, it.alone()
	r.sched.Park(&it.Item, j.end.Add(j.delay))
	r.noteParked()
	r.goesOn()
	r.wakeOne()
	return true
}

// renew implements mover.
func (r *dispatcher) renew(it *item, own *longshore.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.d = own
}

// failedMove implements mover.
func (r *dispatcher) failedMove(it *item, why, err error) (tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it.dead == nil {
		it.dead = &deadLetter{err: why}
	}
	it.dead.tries++
	it.dead.failed = err
	return it.dead.tries
}

// parking is the space and the timer for what is parked. Guarded by dispatcher.mu.
type parking struct {
	full  bool            // the space was reported as used up, and is not free again to a tenth
	timer longshore.Timer // until the first one is due; nil: none is armed
	due   time.Time       // when it fires
}

// note follows how full the space is, and returns the kind of the event to emit when it
// fills up and when there is room again; "": none.
func (p *parking) note(full bool, n, limit int) (report EventKind) {
	was := p.full
	if full || n < limit*9/10 {
		p.full = full
	}
	switch {
	case p.full == was:
		return ""
	case p.full:
		return EventParkingFull
	}
	return EventParkingFree
}

// arm sets the timer to the time at which the first one is due.
func (p *parking) arm(clock longshore.Clock, due time.Time, fire func()) {
	if p.timer != nil {
		if !due.Before(p.due) {
			return
		}
		p.timer.Stop()
	}
	p.due = due
	p.timer = clock.AfterFunc(max(due.Sub(clock.Now()), 0), fire)
}

// parkingFull reports whether the space for waiting retries is used up.
func (r *dispatcher) parkingFull() bool {
	full, n := r.sched.RetriesFull(), r.sched.Retries().N
	switch r.parking.note(full, n, r.s.parked) {
	case EventParkingFree:
		r.emit(Event{Kind: EventParkingFree, Count: n, Text: fmt.Sprintf("%d retries wait, fewer than Redelivery.Parked allows", n)})
	case EventParkingFull:
		r.emit(Event{Kind: EventParkingFull, Count: n,
			Text: fmt.Sprintf("%d retries wait, as many as Redelivery.Parked allows; new failures go to the broker or the dead-letter place early, and while nearly all fail nothing more is received", n)})
	}
	return full
}

// armPark sets the timer to the first that is due.
func (r *dispatcher) armPark() {
	if due, ok := r.sched.NextDue(); ok {
		r.parking.arm(r.s.clock, due, r.parkDue)
	}
}

func (r *dispatcher) parkDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parking.timer = nil
	if r.endWorkers() {
		return
	}
	r.sched.Wake(r.s.clock.Now())
	r.moveDue()
	r.armBatch()
	r.armPark()
	r.wakeOne()
}

// moveDue starts moving what is due to be moved to the dead-letter place again.
func (r *dispatcher) moveDue() {
	if r.sched.Waiting() > 0 && !r.movingDead {
		r.movingDead = true
		r.pool.wg.Go(r.moveDead)
	}
}

// takeDue takes the next item that is due to be moved; nil: none is, and the moving ends.
func (r *dispatcher) takeDue() *item {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := r.sched.TakeDue(); next != nil {
		return next.Of
	}
	r.movingDead = false
	r.changed()
	return nil
}

// orphaned follows a loss: what came behind the lost delivery in its lane has to be given
// back, since the lost one comes again and must be first.
func (r *dispatcher) orphaned() {
	if r.sched.Orphans() > 0 {
		r.changed()
		r.wake()
	}
}

// gateOpened follows the gate: it may have permits again, or other limits.
func (r *dispatcher) gateOpened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate.shut = false
	r.armBatch()
	if r.gate.follow() {
		r.followGate()
	}
	r.wakeOne()
}

// followGate lets the intake follow new limits: a Receive that was asked for more returns,
// the broker's window changes, and fetching stops while nothing may start.
func (r *dispatcher) followGate() {
	r.axes.Holds = r.axes.Holds.With(state.Throttle, r.gate.limits.holdsAll())
	if r.intake.under() {
		r.intake.recall()
	}
	r.resizeDue = true
	r.wake()
}
