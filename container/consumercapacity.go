package container

import (
	"slices"
	"time"
)

const (
	// capacityEvery is the mean pause between two looks at whether a delivery could be taken:
	// often enough for a meaningful share within seconds, and rare enough to cost nothing.
	// Each pause is random, so that a load with a fixed rhythm cannot hide from it.
	capacityEvery = 100 * time.Millisecond
	// capacityFor is over how long the share is taken.
	capacityFor = 10 * time.Second
)

// capacity is the share of time in which a delivery could be started at once. Guarded by
// guard.mu.
type capacity struct {
	of    int     // the generation that it describes
	seen  float64 // looks at it, up to those of capacityFor
	share float64 // the mean of these looks, 0 to 1
}

// note counts a look. A new subscription begins at zero: the state reports what an outage
// did.
func (c *capacity) note(generation int, could bool) {
	if c.of != generation {
		*c = capacity{of: generation}
	}
	c.seen = min(c.seen+1, float64(capacityFor/capacityEvery))
	now := 0.0
	if could {
		now = 1
	}
	c.share += (now - c.share) / c.seen
}

// shareOf is the share for a consumer; could is what a look would find now.
func (c *capacity) shareOf(g *generation, could bool) float64 {
	switch {
	case g != nil && c.of == g.id:
		return c.share
	case could: // too new to have been looked at
		return 1
	}
	return 0
}

// armCapacity looks at the capacity again in a moment.
func (s *scaler) armCapacity() {
	s.locked(func() {
		if !s.axes.Stopping() {
			s.load.sampling = s.s.clock.AfterFunc(time.Duration((0.5+rnd())*float64(capacityEvery)), s.lookAtCapacity)
		}
	})
}

// lookAtCapacity notes whether a delivery could be taken now.
func (s *scaler) lookAtCapacity() {
	s.locked(func() {
		if g := s.sub.gen; g != nil && !g.isDown() {
			s.load.capacity.note(g.id, s.mayTake())
		}
	})
	s.armCapacity()
}

// free says whether a worker has nothing to do.
func (p *pool) free() bool {
	return len(p.idle) > 0 || slices.ContainsFunc(p.workers, func(w *worker) bool { return w.d == nil && len(w.batch) == 0 })
}

// mayTake says whether a delivery that the broker handed over now would start at once:
// there is room for it, nothing is before it, and a worker is free. Room alone says
// little: received messages wait in it while all workers are busy.
func (s *scaler) mayTake() bool {
	return s.axes.Accepts() && !s.gate.shut && s.held.sched.Ready() == 0 && s.hand.free() > 0 && (s.intake.by == workerReceives || s.pool.free())
}
