package container

import (
	"bytes"
	"runtime"
	"strconv"
)

// runner is the life of a worker: it takes work, else it receives, else it rests.
type runner struct {
	common
	axes   *axes     // when there is nothing to do for workers any more
	hand   *handout  // which says what may start, and who receives
	held   *stock    // where the work is taken from
	cycles *cycles   // how long workers wait, for policies that ask
	recv   *receiver // what an idle worker does
	do     *caller   // what a busy worker does
}

// run goes on until the worker retires or the run ends.
func (u *runner) run(w *worker) {
	w.gid.Store(goroutineID())
	clean := false
	defer func() {
		if !clean {
			u.do.goexit(w)
		}
	}()
	u.locked(func() { u.workLocked(w) })
	clean = true
}

// workLocked takes, receives and rests; each of them gives the lock up meanwhile.
func (u *runner) workLocked(w *worker) {
	for !w.retire && !u.axes.ending() && !u.hand.pool.surplus() {
		switch {
		case u.next(w):
			u.cycles.begins(w, u.now)
			u.hand.wakeOne()
			u.do.process(w)
			u.cycles.ends(w, u.now)
		case u.hand.mayReceive():
			u.recv.receive(workerReceives)
			w.waited = u.cycles.waited
		default:
			u.hand.pool.rest(w)
			u.unlocked(func() { <-w.wake })
			u.hand.pool.woken(w)
		}
	}
	u.hand.leave(w)
}

// next gives the worker something to do.
func (u *runner) next(w *worker) bool {
	if u.s.batch > 0 {
		return u.nextBatch(w)
	}
	for u.hand.startable() {
		it := u.held.sched.Front().Of
		if !it.d.Owned() {
			u.loseFront()
			continue
		}
		if !u.hand.gate.admit(it) {
			u.axes.changed() // a drain does not wait for a permit
			return false
		}
		w.taken = u.held.sched.Next(1, w.taken[:0])
		u.begin(it)
		w.it, w.d = it, it.d
		return true
	}
	return false
}

// nextBatch gives the worker up to a batch: ready items, each with the followers in its
// lane.
func (u *runner) nextBatch(w *worker) bool {
	if !u.hand.startable() {
		return false
	}
	w.batch = w.batch[:0]
	for u.held.sched.Ready() > 0 && len(w.batch) < u.s.batch {
		it := u.held.sched.Front().Of
		if !it.d.Owned() {
			u.loseFront()
			continue
		}
		if len(w.batch) > 0 && it.alone() {
			break
		}
		// A batch is one call and needs one permit.
		if len(w.batch) == 0 && !u.hand.gate.admit(it) {
			u.axes.changed()
			u.held.linger.refused()
			return false
		}
		w.taken = u.held.sched.Next(u.s.batch-len(w.batch), w.taken[:0])
		for _, t := range w.taken {
			u.begin(t.Of)
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
	u.held.linger.stop()
	u.held.readyChanged()
	return len(w.batch) > 0
}

// begin notes what a handler may ask for while it has the item.
func (u *runner) begin(it *item) {
	if u.held.manual != nil && it.fail == nil {
		it.returned = false
		u.held.manual[it.d] = it
	}
}

// loseFront forgets a delivery that the broker took back before it was started.
func (u *runner) loseFront() {
	u.held.forget(u.held.sched.LoseFront().Of)
	u.held.orphaned()
	u.held.goesOn()
}

// goroutineID reads the number under which stack dumps show this goroutine.
func goroutineID() int64 {
	var buf [40]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	if i := bytes.IndexByte(line, ' '); i > 0 {
		n, _ := strconv.ParseInt(string(line[:i]), 10, 64)
		return n
	}
	return 0
}
