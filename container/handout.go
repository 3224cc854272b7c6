package container

import (
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
			r.pool.wakeHottest()
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

// next gives the worker something to do.
func (r *dispatcher) next(w *worker) bool {
	if r.s.batch > 0 {
		return r.nextBatch(w)
	}
	for r.startable() {
		it := r.sched.Front().Of
		if !it.d.Owned() {
			r.loseFront()
			continue
		}
		if !r.gate.admit(it) {
			r.changed() // a drain does not wait for a permit
			return false
		}
		w.taken = r.sched.Next(1, w.taken[:0])
		r.begin(it)
		w.it, w.d = it, it.d
		return true
	}
	return false
}

// nextBatch gives the worker up to a batch: ready items, each with the followers in its
// lane.
func (r *dispatcher) nextBatch(w *worker) bool {
	if !r.startable() {
		return false
	}
	w.batch = w.batch[:0]
	for r.sched.Ready() > 0 && len(w.batch) < r.s.batch {
		it := r.sched.Front().Of
		if !it.d.Owned() {
			r.loseFront()
			continue
		}
		if len(w.batch) > 0 && it.alone() {
			break
		}
		// A batch is one call and needs one permit.
		if len(w.batch) == 0 && !r.gate.admit(it) {
			r.changed()
			r.linger.refused()
			return false
		}
		w.taken = r.sched.Next(r.s.batch-len(w.batch), w.taken[:0])
		for _, t := range w.taken {
			r.begin(t.Of)
		}
		if it.fail != nil {
			w.it, w.d = it, it.d
			return true
		}
		for _, t := range w.taken {
			w.batch = append(w.batch, t.Of)
		}
		if it.solo {
			break
		}
	}
	r.linger.stop()
	r.armBatch()
	return len(w.batch) > 0
}

// begin notes what a handler may ask for while it has the item.
func (r *dispatcher) begin(it *item) {
	if r.manual != nil && it.fail == nil {
		it.returned = false
		r.manual[it.d] = it
	}
}

// loseFront forgets a delivery that the broker took back before it was started.
func (r *dispatcher) loseFront() {
	r.forget(r.sched.LoseFront().Of)
	r.orphaned()
	r.goesOn()
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
	r.items.put(it)
}

// goesOn follows a change of what is held: something may be ready, or parked, that was
// not.
func (r *dispatcher) goesOn() {
	if len(r.growth.waiting) > 0 {
		r.growth.allow(r.sched)
	}
	r.armPark()
	r.armBatch()
	r.changed()
	r.checkInvariants()
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
