package container

import (
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// cycleState counts for a policy by consecutive cycles; guarded by engine.mu.
//
// A run of active cycles belongs to a worker that never has to wait. Idle ones
// belong to a rank: with work going to the hottest worker first, the k-th is idle
// while fewer than k calls run, whichever goroutines those are.
type cycleState struct {
	of     *autoscale.Cycles // nil: nobody asks
	calls  int               // workers with something to do
	since  []time.Time       // when a rank was left
	active int               // runs that tripped
	waited bool              // the last receive waited for work
}

// begins is called when a worker has got work. The caller holds mu.
func (c *cycleState) begins() { c.calls++ }

// ends counts the cycle of a worker whose work is done. A failed call neither grows
// the pool nor lets the worker leave. The caller holds mu.
func (r *dispatcher) endCycle(w *worker) {
	c := &r.tick.cycles
	c.calls--
	if c.of == nil {
		return
	}
	if c.calls < len(c.since) {
		c.since[c.calls] = r.now()
	}
	switch {
	case w.failed:
	case w.waited:
		w.active = 0
	default:
		w.active++
	}
	w.waited, w.failed = false, false
	if w.active > c.of.Active+1 {
		w.active = 0
		c.active++
	}
}

// tripped tells how many workers passed a trigger since the last tick. The caller
// holds mu.
func (r *engine) tripped(now time.Time, dt time.Duration, held bool) (active, idle int) {
	c := &r.tick.cycles
	if c.of == nil {
		return 0, 0
	}
	active, c.active = c.active, 0
	for len(c.since) < r.pool.target {
		c.since = append(c.since, now)
	}
	c.since = c.since[:r.pool.target]
	for i := c.calls; i < len(c.since); i++ {
		switch {
		case held: // no cycles while nothing may start
			c.since[i] = c.since[i].Add(dt)
		case int(now.Sub(c.since[i])/c.of.Wait) > c.of.Idle+1:
			c.since[i] = now
			idle++
		}
	}
	return active, idle
}
