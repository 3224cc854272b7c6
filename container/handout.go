package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// setTarget starts workers or retires the coldest idle ones.
func (r *dispatcher) setTarget(n int) {
	r.pool.target = n
	if !r.endWorkers() {
		r.pool.fill()
	}
	r.pool.shed()
	r.wakeOne()
}

// endWorkers says that there is nothing to do for workers any more.
func (r *dispatcher) endWorkers() bool { return r.axes.Stop >= state.Closing }

// leave takes a worker off the list. A wake-up it got must be passed on: what it was for
// still waits.
func (r *dispatcher) leave(w *worker) {
	r.pool.remove(w)
	r.wakeOne()
	r.changed()
}

// wakeOne wakes the hottest idle worker if there is something for it to do. One
// wake-up is in flight at a time; who was woken wakes the next. Where no worker is idle,
// one that receives is called back to work that became ready while it waits for the
// broker: a retry that is due, a lane that goes on, an opened gate.
func (r *dispatcher) wakeOne() {
	switch {
	case r.pool.waking:
	case r.pool.mayWake():
		if r.startable() || r.mayReceive() || r.endWorkers() {
			r.pool.wakeNext()
		}
	case r.intake.by == workerReceives:
		if r.startable() {
			r.intake.recall()
		}
	case r.pool.live > 0 && r.mayFetch():
		r.intake.by = fetcherStarts
		r.pool.wg.Go(r.intake.fetch)
	}
}

// startable says whether a worker would find something.
func (r *dispatcher) startable() bool {
	if r.sched.Ready() == 0 || r.gate.shut || !r.axes.Starts() {
		return false
	}
	return r.s.batch == 0 || r.batchReady()
}

// finish ends an item that runs or was taken: its place is free and its lane goes on.
func (r *dispatcher) finish(it *item) {
	r.sched.Finish(&it.Item)
	r.forget(it)
	r.goesOn()
}

// forget looks after an item that the Scheduler has let go.
func (r *dispatcher) forget(it *item) {
	if g := it.gen; g.Held() == 0 && g != r.sub.gen {
		r.wake() // the supervisor closes it
	}
	r.intake.items.put(it)
}

// goesOn follows a change of what is held: something may be ready, or parked, that was
// not.
func (r *dispatcher) goesOn() {
	if len(r.growth.waiting) > 0 {
		r.growth.allow(r.sched)
	}
	r.parking.follow(r.sched)
	r.linger.follow(r.sched.Ready())
	r.changed()
	checkInvariants(r.sched)
}

// find returns the worker and item of a delivery that is being handled.
func (p *pool) find(d *longshore.Delivery) (*worker, *item) {
	for _, w := range p.workers {
		if w.d == d {
			return w, w.it
		}
		for _, it := range w.batch {
			if it.d == d {
				return w, it
			}
		}
	}
	return nil, nil
}

// mayReceive says whether a worker without work should become the receiver.
func (r *dispatcher) mayReceive() bool {
	g := r.sub.gen
	if r.intake.by != noReceiver || !r.axes.Receives() || !g.delivers() || g.ctx.Err() != nil {
		return false
	}
	return !r.gate.shut && r.free() > 0 && !r.triesHeld()
}

// trialSoon is how near a parked retry has to be for a trial to wait for it.
const trialSoon = time.Second

// triesHeld says whether a middleware only tries if work may start, and the deliveries that
// are held are enough to find out. To receive more for each trial would fill the memory for
// as long as the trials fail: behind parked heads, followers take no place in the window.
func (r *dispatcher) triesHeld() bool {
	due, parked := r.sched.NextDue()
	return parked && (r.sched.InWindow() > 0 || due.Sub(r.now()) < trialSoon) && r.gate.doubts()
}

// mayFetch says whether to receive although all workers are busy, in another goroutine: when
// receives are slow and half of the window is free, so that they are large ones.
func (r *dispatcher) mayFetch() bool {
	return r.intake.pace == paceSlow && r.mayReceive() && 2*r.free() >= r.window()
}

// free is how many more deliveries may be held.
func (r *dispatcher) free() int {
	window := r.window()
	free := r.sched.Free(window)
	if free <= 0 && r.sched.Relieve(window) {
		free = r.sched.Free(window)
	}
	return r.gate.room(free, r.sched.InWindow(), r.sched.Active())
}

// batchReady says whether a batch should be taken now: it is full, its time is over, or
// waiting would bring nothing more. Something is ready.
func (r *dispatcher) batchReady() bool {
	return r.sched.Ready() >= r.s.batch || r.linger.state == lingerOver || r.s.linger == 0 || r.axes.Stopping() ||
		r.sched.Front().Of.alone() || r.free() <= 0
}

// batchOver lets a worker take a batch that did not fill in its time.
func (r *dispatcher) batchOver() {
	r.locked(func() {
		r.linger.end(r.sched.Ready() > 0 && !r.gate.shut)
		r.wakeOne()
	})
}

// parkingFull reports whether the space for waiting retries is used up.
func (r *dispatcher) parkingFull() bool {
	full, n := r.sched.RetriesFull(), r.sched.Retries().N
	switch r.parking.note(full, n, r.s.parked) {
	case EventParkingFree:
		r.emit(Event{Kind: EventParkingFree, Count: n, Text: fmt.Sprintf("%d retries wait, fewer than Redelivery.Parked allows", n)})
	case EventParkingFull:
		r.emit(Event{Kind: EventParkingFull, Count: n,
			Text: fmt.Sprintf("%d retries wait, as many as Redelivery.Parked allows; new failures go to the broker or the dead-letter destination early, and while nearly all fail nothing more is received", n)})
	}
	return full
}

// parkDue lets parked deliveries go on whose time has come.
func (r *dispatcher) parkDue() {
	r.locked(func() {
		r.parking.timer = nil
		if r.endWorkers() {
			return
		}
		r.sched.Wake(r.s.clock.Now())
		r.moves.begin(r.sched.Waiting(), &r.pool.wg)
		r.linger.follow(r.sched.Ready())
		r.parking.follow(r.sched)
		r.wakeOne()
	})
}

// takeDue takes the next item whose move to the dead-letter destination is due; nil: none is.
func (r *dispatcher) takeDue() (it *item) {
	r.locked(func() {
		if it = r.moves.next(r.sched); it == nil {
			r.changed()
		}
	})
	return it
}

// orphaned follows a loss: what came behind the lost delivery in its lane has to be given
// back, since the lost one comes again and must be first.
func (r *dispatcher) orphaned() {
	if r.sched.Orphans() > 0 {
		r.changed()
		r.wake()
	}
}

// sweepLost forgets the lost deliveries that wait, and takes out what is behind them. It
// also runs before redelivered messages enter their lanes: the transport marks a delivery as
// lost before the broker delivers it again, but reports that later. What comes again would
// otherwise pass for a follower of the lost delivery, and go back with its followers while
// those behind it stay.
func (r *dispatcher) sweepLost() {
	for _, t := range r.sched.Lose(isLost) {
		r.forget(t.Of)
	}
	r.orphaned()
	r.goesOn()
}

// endDelivery counts a verdict, and ends the call of the worker; nil: the delivery was
// settled by hand.
func (r *dispatcher) endDelivery(w *worker, j judgement) {
	r.count.verdicts[j.verdict]++
	r.count.vitals.verdict(j)
	r.load.calls.completed++
	if w != nil {
		r.endCall(w, j.end, j.took, j.err != nil)
	}
}

// endCall ends a handler call.
func (r *dispatcher) endCall(w *worker, end time.Time, took time.Duration, failed bool) {
	started := w.busy.Swap(0)
	switch {
	case w.hung: // its time says nothing about the usual latency
		r.pool.unhung(w)
	case started != 0:
		ln := lnSeconds(took)
		r.load.calls.ended(started, end, ln, failed)
		r.count.vitals.calls.add(ln)
	}
	if w.stuck {
		r.pool.unstuck(w)
		r.emit(Event{Kind: EventUnstuck, Delivery: r.inventory().workedOn(w), Text: "a handler that was reported as stuck has returned"})
	}
	w.it, w.d = nil, nil
	w.waits, w.failed = 0, failed
	r.noteQueued()
}

// noteQueued notes whether work waits; called whenever a call ends and at the tick.
func (r *dispatcher) noteQueued() {
	if n := r.sched.Ready() + r.load.backlog.buffered; n > 0 {
		r.load.calls.queued(n, r.window()-r.pool.target)
	} else {
		r.load.calls.queued(0, 0)
	}
}
