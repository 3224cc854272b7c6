package container

import (
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// cycles counts for a policy by consecutive cycles. Guarded by guard.mu.
//
// A run of active cycles belongs to a worker that never has to wait. Idle ones belong to a
// rank: with work going to the hottest worker first, the k-th is idle while fewer than k
// calls run, whichever goroutines those are.
type cycles struct {
	of     *autoscale.Cycles // the policy's limits; nil: it does not count cycles
	calls  int               // workers with something to do
	since  []time.Time       // when a rank was left
	active int               // runs that tripped
	idle   int               // the same for idle cycles, where each worker counts its own
	waited bool              // the last receive waited for work
}

// exact says whether each worker counts its own cycles.
func (c *cycles) exact() bool { return c.of != nil && c.of.Batch > 0 }

// begins notes that a worker has got work.
func (c *cycles) begins(w *worker, now func() time.Time) {
	c.calls++
	if c.exact() {
		c.add(w.cycles.begins(now(), c.of))
	}
}

// add counts triggers that a worker has passed.
func (c *cycles) add(t tripped) { c.active, c.idle = c.active+t.active, c.idle+t.idle }

// ends counts the cycle of a worker whose work is done. A failed call neither grows the
// pool nor lets the worker leave.
func (c *cycles) ends(w *worker, now func() time.Time) {
	c.calls--
	if c.of == nil {
		return
	}
	if c.exact() {
		c.add(w.cycles.ends(now(), w.failed, c.of))
		w.waited, w.failed = false, false
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

// trippedEach is tripped where each worker counts its own cycles.
func (c *cycles) trippedEach(now time.Time, dt time.Duration, workers []*worker, held bool) (active, idle int) {
	for _, w := range workers {
		if held {
			w.cycles.hold(dt)
			continue
		}
		c.add(w.cycles.elapse(now, c.of))
	}
	active, idle, c.active, c.idle = c.active, c.idle, 0, 0
	return active, idle
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
