package container

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// worker is one goroutine that runs handlers. One without work becomes the
// receiver, if there is none; else it waits on the idle stack.
type worker struct {
	wake chan struct{} // has room for one: whoever wakes a worker never waits
	gid  atomic.Int64  // its goroutine's number in stack dumps
	busy atomic.Int64  // when its handler was called, Unix nanoseconds; 0 = none runs

	// Guarded by guard.mu.
	at     int                 // place in pool.workers
	it     *item               // what it works on
	d      *longshore.Delivery // its delivery, also when the item is gone (manual settling)
	batch  []*item             // what it works on where handlers take batches
	began  time.Time           // of the batch
	retire bool                // it ends instead of taking more
	stuck  bool                // reported, and perhaps replaced
	extra  bool                // a replacement was started for it
	hung   bool                // its call hangs, and another worker stands in for it
	waited bool                // had to wait for its work
	failed bool                // its last call
	active int                 // cycles in a row in which it had not to wait
	cycles consumerCycles      // its own, where the policy counts those of each worker
	waits  int                 // calls of Delivery.Wait that run now
	waitAt time.Time           // since when one runs

	ds    []*longshore.Delivery  // scratch of a batch
	taken []*dispatch.Item[item] // scratch of whoever takes work
}

// pool is the workers: how many there are to be, and which of them gets work. It decides
// and keeps count; the goroutines are the runner's. Guarded by guard.mu.
type pool struct {
	run func(*worker)  // the life of a worker, in a goroutine of its own
	wg  sync.WaitGroup // all goroutines of the run that the last step waits for

	workers   []*worker // those that have not ended
	idle      []*worker // those without work, the hottest last: it has the warmest caches
	live      int       // workers, retiring ones not counted
	target    int       // how many the policy wants
	min, max  int       // Config.Workers, or what Scale has made of it
	replacing int       // extra workers for stuck ones, beyond max
	standIns  standIns  // extra workers for calls that hang, within max
	waking    bool      // a wake-up is under way: whoever gets it wakes the next
	byTurns   bool      // the worker that has waited longest is woken first, as RabbitMQ serves consumers
}

// places is how many workers there are to be: the target, those that stand in for calls
// that hang, within the bounds, and those that replace stuck ones, beyond them.
func (p *pool) places() int {
	return min(p.target+p.standIns.n, max(p.max, p.target)) + p.replacing
}

// surplus says whether a worker that has nothing to do should end.
func (p *pool) surplus() bool { return p.live > p.places() }

// fill starts workers until every place is taken.
func (p *pool) fill() {
	for p.live < p.places() {
		w := &worker{wake: make(chan struct{}, 1), at: len(p.workers)}
		p.workers = append(p.workers, w)
		p.live++
		p.wg.Go(func() { p.run(w) })
	}
}

// shed ends the coldest idle workers that have no place.
func (p *pool) shed() {
	for p.surplus() && len(p.idle) > 0 {
		w := p.idle[0]
		p.idle = append(p.idle[:0], p.idle[1:]...)
		w.retire = true
		p.live--
		w.wake <- struct{}{}
	}
}

// rest puts a worker without work on the stack.
func (p *pool) rest(w *worker) {
	w.waited = true
	p.idle = append(p.idle, w)
}

// mayWake says whether there is a worker to be woken.
func (p *pool) mayWake() bool { return !p.waking && len(p.idle) > 0 }

// wakeNext wakes the worker that has rested for the shortest time, or by turns the one that
// has rested for the longest.
func (p *pool) wakeNext() {
	at := len(p.idle) - 1
	if p.byTurns {
		at = 0
	}
	w := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	p.waking = true
	w.wake <- struct{}{}
}

// woken notes that a wake-up has arrived.
func (p *pool) woken(w *worker) {
	if !w.retire { // a retiring worker was not woken for work
		p.waking = false
	}
}

// remove takes a worker off the list whose goroutine ends.
func (p *pool) remove(w *worker) {
	if !w.retire {
		p.live--
	}
	last := p.workers[len(p.workers)-1]
	p.workers[w.at], last.at = last, w.at
	p.workers = p.workers[:len(p.workers)-1]
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
