package container

import (
	"slices"
	"time"

	"github.com/longshore-go/longshore"
)

const (
	// capacityEvery is about how often it is looked whether a delivery could be taken:
	// often enough for a share that means something after seconds, and nothing that a
	// processor notices. Each pause is drawn anew, so that no regular load hides from it.
	capacityEvery = 100 * time.Millisecond
	// capacityFor is over how long the share is taken.
	capacityFor = 10 * time.Second
)

// capacityState is the share of time in which a delivery could be taken at once;
// guarded by engine.mu.
type capacityState struct {
	timer longshore.Timer
	of    int // the generation that it speaks of
	seen  float64
	share float64
}

// armCapacity looks again in a moment.
func (r *engine) armCapacity() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.axes.Stopping() || r.endWorkers() {
		return
	}
	r.tick.capa.timer = r.s.clock.AfterFunc(time.Duration((0.5+rnd())*float64(capacityEvery)), func() {
		r.lookAtCapacity()
		r.armCapacity()
	})
}

// lookAtCapacity notes whether a delivery could be taken now. A new subscription
// begins anew: what an outage did is told by the state.
func (r *engine) lookAtCapacity() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, g := &r.tick.capa, r.sub.gen
	if g == nil || g.isDown() {
		return
	}
	if c.of != g.id {
		c.of, c.seen, c.share = g.id, 0, 0
	}
	c.seen = min(c.seen+1, float64(capacityFor/capacityEvery))
	now := 0.0
	if r.mayTake() {
		now = 1
	}
	c.share += (now - c.share) / c.seen
}

// mayTake says whether a delivery that the broker handed over now would start at once:
// there is room for it, nothing is before it, and a worker is free. Room alone says
// little: it is what received messages wait in while all workers are busy. The caller
// holds mu.
func (r *engine) mayTake() bool {
	return r.axes.Accepts() && !r.gateShut && r.sched.Ready() == 0 && r.free() > 0 && r.freeWorker()
}

// freeWorker says whether a worker has nothing to do. The caller holds mu.
func (r *engine) freeWorker() bool {
	if len(r.pool.idle) > 0 || r.intake.by == workerReceives {
		return true
	}
	return slices.ContainsFunc(r.pool.workers, func(w *worker) bool { return w.d == nil && len(w.batch) == 0 })
}

// consumerCapacity is what Stats tells of a container that consumes. The caller holds mu.
func (r *engine) consumerCapacity() float64 {
	switch g := r.sub.gen; {
	case g != nil && r.tick.capa.of == g.id:
		return r.tick.capa.share
	case r.mayTake(): // too new to have been looked at
		return 1
	}
	return 0
}

// doubted says whether a middleware only tries if work may start.
func (c *ListenerContainer) doubted() bool {
	return slices.ContainsFunc(c.watchers, func(w longshore.Watcher) bool {
		d, ok := w.(longshore.Doubter)
		return ok && d.Doubts()
	})
}
