package container

import (
	"bytes"
	"runtime"
	"strconv"
)

// runner is the life of a worker: it takes work, else it receives, else it rests.
type runner struct {
	*dispatcher           // which hands work out
	recv        *receiver // what an idle worker does
	do          handling  // what a busy worker does
}

// handling runs handlers and carries out what becomes of their deliveries.
type handling interface {
	// process handles what the worker took. mu is held before and after, and given up in
	// between, so that a message costs one lock.
	process(*worker)
	// goexit looks after a worker whose goroutine ended in the middle of a handler.
	goexit(*worker)
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
	u.locked(func() { u.work(w) })
	clean = true
}

// work takes, receives and rests, with mu held in between.
func (u *runner) work(w *worker) {
	for !w.retire && !u.endWorkers() && !u.pool.surplus() {
		switch {
		case u.next(w):
			u.load.cycles.begins(w, u.now)
			u.wakeOne()
			u.do.process(w)
			u.load.cycles.ends(w, u.now)
		case u.mayReceive():
			u.recv.receive(workerReceives)
			w.waited = u.load.cycles.waited
		default:
			u.pool.rest(w)
			u.unlocked(func() { <-w.wake })
			u.pool.woken(w)
		}
	}
	u.leave(w)
}

// next gives the worker something to do.
func (u *runner) next(w *worker) bool {
	if u.s.batch > 0 {
		return u.nextBatch(w)
	}
	for u.startable() {
		it := u.sched.Front().Of
		if !it.d.Owned() {
			u.loseFront()
			continue
		}
		if !u.gate.admit(it) {
			u.changed() // a drain does not wait for a permit
			return false
		}
		w.taken = u.sched.Next(1, w.taken[:0])
		u.begin(it)
		w.it, w.d = it, it.d
		return true
	}
	return false
}

// nextBatch gives the worker up to a batch: ready items, each with the followers in its
// lane.
func (u *runner) nextBatch(w *worker) bool {
	if !u.startable() {
		return false
	}
	w.batch = w.batch[:0]
	for u.sched.Ready() > 0 && len(w.batch) < u.s.batch {
		it := u.sched.Front().Of
		if !it.d.Owned() {
			u.loseFront()
			continue
		}
		if len(w.batch) > 0 && it.alone() {
			break
		}
		// A batch is one call and needs one permit.
		if len(w.batch) == 0 && !u.gate.admit(it) {
			u.changed()
			u.linger.refused()
			return false
		}
		w.taken = u.sched.Next(u.s.batch-len(w.batch), w.taken[:0])
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
	u.linger.stop()
	u.linger.follow(u.sched.Ready())
	return len(w.batch) > 0
}

// begin notes what a handler may ask for while it has the item.
func (u *runner) begin(it *item) {
	if u.manual != nil && it.fail == nil {
		it.returned = false
		u.manual[it.d] = it
	}
}

// loseFront forgets a delivery that the broker took back before it was started.
func (u *runner) loseFront() {
	u.forget(u.sched.LoseFront().Of)
	u.orphaned()
	u.goesOn()
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
