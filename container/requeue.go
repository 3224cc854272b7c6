package container

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// What is behind a lost delivery in its lane goes back to the broker: the lost one comes
// again, and must be first.

// orphaned follows a loss: what it left behind has to be given back. The caller holds mu.
func (r *dispatcher) orphaned() {
	if r.sched.Orphans() > 0 {
		r.changed()
		r.wake()
	}
}

// releaseOrphans gives back what a loss left behind.
func (r *engine) releaseOrphans() {
	r.mu.Lock()
	out := r.sched.TakeOrphans()
	r.mu.Unlock()
	r.releaseAll(out)
}

// releaseAll gives back what was taken, in order.
func (r *engine) releaseAll(out []*dispatch.Item[item]) {
	for _, t := range out {
		r.release(t.Of, t.Of.d.Attempt)
	}
}

// markLost notes that an item of a batch is lost whose handler was not called.
func (r *engine) markLost(it *item) {
	r.mu.Lock()
	r.sched.Tear(&it.Item)
	r.mu.Unlock()
}

func (r *engine) isTorn(it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sched.Torn(&it.Item)
}

// unseen is for what the handler was not given: it was lost, or comes behind a lost one.
func (r *engine) unseen(it *item, end time.Time) {
	if it.d.Owned() {
		r.redeliver(nil, it, judgement{verdict: longshore.VerdictRelease, end: end}, it.d.Attempt)
		return
	}
	r.carryOut(nil, it, longshore.ErrLost, end, 0)
}
