package container

import (
	"bytes"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// worker is one goroutine that runs handlers. One without work becomes the
// receiver, if there is none; else it waits on the idle stack.
type worker struct {
	wake chan struct{}
	gid  atomic.Int64 // its goroutine's number in stack dumps
	busy atomic.Int64 // when its handler was called, Unix nanoseconds; 0 = none runs

	// Guarded by engine.mu.
	at     int                 // place in run.workers
	it     *item               // what it works on
	d      *longshore.Delivery // its delivery, also when the item is gone (manual settling)
	batch  []*item
	ending []*item   // of a batch that has ended, those whose verdicts are not carried out yet
	began  time.Time // of the batch
	retire bool
	stuck  bool // reported, and perhaps replaced
	extra  bool // a replacement was started for it
	hung   bool // its call hangs, and another worker stands in for it
	waited bool // had to wait for its work
	failed bool // its last call
	active int  // cycles in a row in which it had not to wait
	waits  int  // calls of Delivery.Wait that run now
	waitAt time.Time

	ds    []*longshore.Delivery  // scratch of a batch
	taken []*dispatch.Item[item] // scratch of whoever takes work
}

// setTarget starts workers or retires the coldest idle ones. The caller holds mu.
func (r *engine) setTarget(n int) {
	r.pool.target = n
	for r.pool.live < r.places() && !r.endWorkers() {
		r.startWorker()
	}
	for r.pool.live > r.places() && len(r.pool.idle) > 0 {
		w := r.pool.idle[0]
		r.pool.idle = append(r.pool.idle[:0], r.pool.idle[1:]...)
		w.retire = true
		r.pool.live--
		w.wake <- struct{}{}
	}
	r.wakeOne()
}

func (r *engine) startWorker() {
	w := &worker{wake: make(chan struct{}, 1), at: len(r.pool.workers)}
	r.pool.workers = append(r.pool.workers, w)
	r.pool.live++
	r.pool.wg.Add(1)
	go r.work(w)
}

// endWorkers says that there is nothing to do for workers any more.
func (r *engine) endWorkers() bool { return r.axes.Stop >= state.Closing }

// work is a worker's life.
func (r *engine) work(w *worker) {
	defer r.pool.wg.Done()
	w.gid.Store(goroutineID())
	clean := false
	defer func() {
		if !clean {
			r.goexit(w)
		}
	}()
	r.mu.Lock()
	for !w.retire && !r.endWorkers() {
		if r.pool.live > r.places() {
			break
		}
		switch {
		case r.next(w):
			r.tick.cycles.begins()
			r.wakeOne()
			r.mu.Unlock()
			r.process(w) // comes back with mu held
			r.endCycle(w)
		case r.mayReceive():
			r.receive()
			w.waited = r.tick.cycles.waited
		default:
			w.waited = true
			r.pool.idle = append(r.pool.idle, w)
			r.mu.Unlock()
			<-w.wake
			r.mu.Lock()
			if !w.retire {
				r.pool.waking = false
			}
		}
	}
	if !w.retire {
		r.pool.live--
	}
	r.leave(w)
	clean = true
	r.mu.Unlock()
}

// leave takes the worker off the list. A wake-up it got must be passed on: what it
// was for still waits.
func (r *engine) leave(w *worker) {
	last := r.pool.workers[len(r.pool.workers)-1]
	r.pool.workers[w.at], last.at = last, w.at
	r.pool.workers = r.pool.workers[:len(r.pool.workers)-1]
	r.wakeOne()
	r.changed()
}

// wakeOne wakes the hottest idle worker if there is something for it to do. One
// wake-up is in flight at a time; who was woken wakes the next. The caller holds mu.
func (r *engine) wakeOne() {
	if r.pool.waking {
		return
	}
	if len(r.pool.idle) == 0 {
		switch {
		case r.intake.receiving && !r.intake.fetching && r.startable():
			r.callReceiver()
		case r.pool.live > 0 && r.mayFetch():
			r.intake.fetching = true
			r.pool.wg.Add(1)
			go r.fetch()
		}
		return
	}
	if !r.startable() && !r.mayReceive() && !r.endWorkers() {
		return
	}
	w := r.pool.idle[len(r.pool.idle)-1]
	r.pool.idle = r.pool.idle[:len(r.pool.idle)-1]
	r.pool.waking = true
	w.wake <- struct{}{}
}

// callReceiver brings the receiver back to work that became ready while it waits
// for the broker: a retry that is due, a lane that goes on, an opened gate. The
// caller holds mu.
func (r *engine) callReceiver() {
	if g := r.intake.receiver; r.intake.receiverCtx.Err() == nil {
		g.interrupt()
		g.rearm(r.life.base)
	}
}

// startable says whether a worker would find something. The caller holds mu.
func (r *engine) startable() bool {
	if r.sched.Ready() == 0 || r.gateShut || !r.axes.Starts() {
		return false
	}
	return r.s.batch == 0 || r.batchReady()
}

// next gives the worker something to do. The caller holds mu.
func (r *engine) next(w *worker) bool {
	if r.s.batch > 0 {
		return r.nextBatch(w)
	}
	for r.startable() {
		it := r.sched.Front().Of
		if !it.d.Owned() {
			r.loseFront()
			continue
		}
		if r.s.gate != nil && !r.acquire(it) {
			return false
		}
		w.taken = r.sched.Next(1, w.taken[:0])
		r.begin(it)
		w.it, w.d = it, it.d
		return true
	}
	return false
}

// begin notes what a handler may ask for while it has the item. The caller holds mu.
func (r *engine) begin(it *item) {
	if r.manual != nil {
		it.returned = false
		r.manual[it.d] = it
	}
}

// loseFront forgets a delivery that the broker took back before it was started. The
// caller holds mu.
func (r *engine) loseFront() {
	r.forget(r.sched.LoseFront().Of)
	r.orphaned()
	r.goesOn()
}

// finish ends an item that runs or was taken: its place is free and its lane goes on. The
// caller holds mu.
func (r *engine) finish(it *item) {
	r.sched.Finish(&it.Item)
	r.forget(it)
	r.goesOn()
}

// forget looks after an item that the Scheduler has let go. The caller holds mu.
func (r *engine) forget(it *item) {
	if g := it.gen; g.Held() == 0 && g != r.sub.gen {
		r.wake() // the supervisor closes it
	}
	r.items.put(it)
}

// goesOn follows a change of what is held: something may be ready, or parked, that was
// not. The caller holds mu.
func (r *engine) goesOn() {
	r.armPark()
	r.armBatch()
	r.changed()
	r.checkInvariants()
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
