package container

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// concluder makes the changes that follow a verdict, each under the lock at once: it counts
// the verdict, frees the worker, and lets the item go or wait here. The
// settler and the returner, which work without the lock, reach what it guards by this type alone.
type concluder struct {
	common
	log   *eventLog // what the report of a stop counts
	axes  *axes     // whether a stop has begun: then less is parked here
	hand  *handout  // what follows when a place is free
	pool  *pool     // whose workers get free
	held  *stock    // what it changes, each time in one piece
	load  *load     // what the policy learns of a call
	count *counters // what Stats shows of it
}

// done counts the verdict and frees the item's place and lane. w is the worker whose call ends
// with it; nil: none does.
func (c *concluder) done(w *worker, it *item, j judgement) {
	c.locked(func() {
		c.conclude(w, it, j)
		c.hand.wakeOne()
	})
}

// conclude counts a verdict and lets the item go.
func (c *concluder) conclude(w *worker, it *item, j judgement) {
	if j.unstarted {
		c.count.verdicts[j.verdict]++
	} else {
		c.endDelivery(w, j)
	}
	if j.returned {
		c.count.delayed.add(j.end.Add(j.delay), j.end)
	}
	if c.axes.reporting() {
		c.tally(j)
	}
	if !j.unstarted && (j.verdict == longshore.VerdictLost || j.comesBack() && c.held.sched.Torn(&it.Item)) {
		c.held.sched.Orphan(&it.Item)
		c.held.orphaned()
	}
	c.held.finish(it)
}

// tally counts for the report of a drain.
func (c *concluder) tally(j judgement) {
	switch {
	case j.returned:
		c.log.drained(tally{released: 1})
	case j.final():
		c.log.drained(tally{completed: 1})
	}
}

// standing is how the item stands now.
func (c *concluder) standing(it *item) (st standing) {
	c.locked(func() { st = c.standingNow(it) })
	return st
}

// standingNow is standing under the lock.
func (c *concluder) standingNow(it *item) standing {
	st := standing{torn: c.held.sched.Torn(&it.Item), full: c.held.parkingFull(), outage: c.count.vitals.share > outageShare,
		draining: c.axes.Stopping()}
	st.closes = st.draining && c.axes.Stop >= state.ReturnOnly && it.gen.asOne()
	// While a stop works off what was received, a lane's head waits here like always: given
	// back, its followers would overtake it. So does what comes behind others of its batch
	// that wait here: they go back first.
	st.leaves = !it.Returns() && (it.leaving || st.draining && (c.axes.Stop >= state.ReturnOnly || !it.Ordered()))
	return st
}

// park puts the item aside for the judgement's delay; next is its next attempt. It reports
// false if the item has to go back to the broker instead: a stop has begun.
func (c *concluder) park(w *worker, it *item, next *longshore.Delivery, j judgement) (stays bool) {
	c.locked(func() { stays = c.parkNow(w, it, next, j) })
	return stays
}

// parkNow is park under the lock.
func (c *concluder) parkNow(w *worker, it *item, next *longshore.Delivery, j judgement) bool {
	c.endDelivery(w, j)
	if j.verdict == longshore.VerdictRelease {
		it.releases++
	}
	it.d = next
	it.notes.Store(nil)
	if (it.leaving || c.axes.Stopping() && c.axes.Stop >= state.ReturnOnly) && !it.Returns() { // it began after we looked
		return false
	}
	it.Apart, it.Alone = it.dead != nil, it.alone()
	c.held.sched.Park(&it.Item, j.end.Add(j.delay))
	c.hand.noteParked()
	c.held.goesOn()
	c.hand.wakeOne()
	return true
}

// renew gives the item a new attempt for the same delivery.
func (c *concluder) renew(it *item, own *longshore.Delivery) {
	c.locked(func() { it.d = own })
}

// failedMove notes that a move failed, and returns how often it did.
func (c *concluder) failedMove(it *item, why, err error) (tries int) {
	c.locked(func() {
		if it.dead == nil {
			it.dead = &deadLetter{err: why}
		}
		it.dead.tries++
		it.dead.failed = err
		tries = it.dead.tries
	})
	return tries
}

// endDelivery counts a verdict, and ends the call of the worker; nil: the delivery was
// settled by hand.
func (c *concluder) endDelivery(w *worker, j judgement) {
	c.count.verdicts[j.verdict]++
	c.count.vitals.verdict(j)
	c.load.calls.completed++
	if w != nil {
		c.endCall(w, j.end, j.took, j.err != nil)
	}
}

// endCall ends a handler call.
func (c *concluder) endCall(w *worker, end time.Time, took time.Duration, failed bool) {
	started := w.busy.Swap(0)
	switch {
	case w.hung: // its time says nothing about the usual latency
		c.pool.unhung(w)
	case started != 0:
		ln := lnSeconds(took)
		c.load.calls.ended(started, end, ln, failed)
		c.count.vitals.calls.add(ln)
	}
	if w.stuck {
		c.pool.unstuck(w)
		c.emit(Event{Kind: EventUnstuck, Delivery: c.held.inventory(c.pool).workedOn(w), Text: "a handler that was reported as stuck has returned"})
	}
	w.it, w.d = nil, nil
	w.waits, w.failed = 0, failed
	c.noteQueued()
}

// noteQueued notes how much waits for a worker.
func (c *concluder) noteQueued() {
	ready, spare := c.held.sched.Ready(), 0
	if c.load.waiting(ready) > 0 { // seldom, where workers are free
		spare = c.hand.window() - c.pool.target
	}
	c.load.noteQueued(ready, spare)
}
