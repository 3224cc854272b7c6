package container

import (
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// cycles counts for a policy by consecutive cycles. Guarded by dispatcher.mu.
//
// A run of active cycles belongs to a worker that never has to wait. Idle ones belong to a
// rank: with work going to the hottest worker first, the k-th is idle while fewer than k
// calls run, whichever goroutines those are.
type cycles struct {
	of     *autoscale.Cycles // the policy's limits; nil: it does not count cycles
	calls  int               // workers with something to do
	since  []time.Time       // when a rank was left
	active int               // runs that tripped
	waited bool              // the last receive waited for work
}

// begins notes that a worker has got work.
func (c *cycles) begins() { c.calls++ }

// ends counts the cycle of a worker whose work is done. A failed call neither grows the
// pool nor lets the worker leave.
func (c *cycles) ends(w *worker, now func() time.Time) {
	c.calls--
	if c.of == nil {
		return
	}
	if c.calls < len(c.since) {
		c.since[c.calls] = now()
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

// tripped says how many workers passed a limit since the last tick, of dt. held says that
// nothing may start: then there are no cycles.
func (c *cycles) tripped(now time.Time, dt time.Duration, target int, held bool) (active, idle int) {
	if c.of == nil {
		return 0, 0
	}
	active, c.active = c.active, 0
	for len(c.since) < target {
		c.since = append(c.since, now)
	}
	c.since = c.since[:target]
	for i := c.calls; i < len(c.since); i++ {
		switch {
		case held:
			c.since[i] = c.since[i].Add(dt)
		case int(now.Sub(c.since[i])/c.of.Wait) > c.of.Idle+1:
			c.since[i] = now
			idle++
		}
	}
	return active, idle
}
