package container

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// HeldState is what a delivery that a container holds does, or waits for.
type HeldState string

// The states of held deliveries.
const (
	HeldRunning HeldState = "running" // its handler runs; with manual settling, it is not settled yet
	HeldStuck   HeldState = "stuck"   // its handler has not returned for Config.Stuck.After
	HeldParked  HeldState = "parked"  // waits here for its next attempt, until Due
	HeldMoving  HeldState = "moving"  // waits, until Due, to be moved to the dead-letter place again
	HeldReady   HeldState = "ready"   // waits for a worker or a permit
	HeldBehind  HeldState = "behind"  // waits for an earlier one of its key or partition
)

// Held is a delivery that a container holds.
type Held struct {
	// Record names it for RetryNow, DeadLetterNow and ReleaseNow: the message's id, or
	// where it has none topic/partition/position.
	Record string
	State  HeldState
	// DeliveryFacts are those of the delivery. Age is that of the handler's call, of what
	// no handler has the time since it was received.
	DeliveryFacts
	Topic string
	Due   time.Time // of what is parked or to be moved
	Stack string    // of the handler's goroutine; only from Stuck
}

// holding is an item in its place.
type holding struct {
	state HeldState
	w     *worker // that works on it; nil: none does
}

// holdings goes over what is held: what runs, then what waits for its time, for a
// worker, for others. Not seen is what is on its way to the broker this moment. The
// caller holds mu.
func (r *dispatcher) holdings() iter.Seq2[*item, holding] {
	return func(yield func(*item, holding) bool) {
		_ = r.eachRunning(yield) && r.eachWaiting(yield)
	}
}

func (r *dispatcher) eachRunning(yield func(*item, holding) bool) bool {
	of := map[*longshore.Delivery]*worker{}
	for _, w := range r.pool.workers {
		h := holding{HeldRunning, w}
		if w.stuck {
			h.state = HeldStuck
		}
		switch {
		case r.manual != nil: // the handler may have settled it long ago
			if w.d != nil {
				of[w.d] = w
			}
		case w.it != nil && !yield(w.it, h):
			return false
		}
		for _, it := range w.batch {
			if !yield(it, h) {
				return false
			}
		}
	}
	for d, it := range r.manual {
		h := holding{HeldRunning, of[d]}
		if h.w != nil && h.w.stuck {
			h.state = HeldStuck
		}
		if !yield(it, h) {
			return false
		}
	}
	return true
}

func (r *dispatcher) eachWaiting(yield func(*item, holding) bool) bool {
	for t := range r.sched.All() {
		if t.State() != dispatch.Running && !yield(t.Of, holding{state: waitsAs(t.Of)}) {
			return false
		}
	}
	return true
}

// waitsAs is the state of an item that no handler has.
func waitsAs(it *item) HeldState {
	switch st := it.State(); {
	case st == dispatch.Behind:
		return HeldBehind
	case st == dispatch.Ready:
		return HeldReady
	case it.dead != nil:
		return HeldMoving
	}
	return HeldParked
}

// InFlight returns what the container holds, at most so many (0: all): what runs
// first, the longest first, then what is parked by its time, then what waits. total
// is how many there are.
func (c *ListenerContainer) InFlight(most int) (held []Held, total int) {
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	if r == nil {
		return nil, 0
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	type found struct {
		it *item
		holding
		at time.Time // what is sorted by
	}
	var all []found
	for it, h := range r.holdings() {
		all = append(all, found{it, h, r.sortsBy(it, h)})
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(rank(a.state), rank(b.state)), a.at.Compare(b.at))
	})
	total = len(all)
	if most > 0 && total > most {
		all = all[:most]
	}
	for _, f := range all {
		held = append(held, r.look(f.it, f.holding, now))
	}
	return held, total
}

func rank(s HeldState) int {
	switch s {
	case HeldRunning, HeldStuck:
		return 0
	case HeldParked, HeldMoving:
		return 1
	case HeldReady:
		return 2
	}
	return 3
}

func (r *dispatcher) sortsBy(it *item, h holding) time.Time {
	switch rank(h.state) {
	case 0:
		return r.calledAt(it, h)
	case 1:
		return it.Due()
	}
	return time.Time{} // as they stand
}

// calledAt is when the handler was called; zero: it was not yet. The caller holds mu.
func (r *dispatcher) calledAt(it *item, h holding) time.Time {
	if r.manual != nil {
		return it.started
	}
	if started := h.w.busy.Load(); started != 0 {
		return time.Unix(0, started)
	}
	return time.Time{}
}

// look describes an item. The caller holds mu.
func (r *dispatcher) look(it *item, h holding, now time.Time) Held {
	v := Held{Record: it.record(), State: h.state, DeliveryFacts: *factsOfItem(it, it.d), Topic: it.d.Origin.Topic}
	v.Of = r.s.attempts
	since := v.ReceivedAt
	switch rank(h.state) {
	case 0:
		since = r.calledAt(it, h)
	case 1:
		v.Due = it.Due()
	}
	if !since.IsZero() {
		v.Age = max(now.Sub(since), 0)
	}
	return v
}

// record is what operators call it by.
func (it *item) record() string { return first(it.identity(), it.place()) }

func (it *item) place() string {
	o := it.d.Origin
	return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Position)
}

// Stuck returns the deliveries whose handlers do not return, the longest first, with
// the stacks of their goroutines. It stops the process for a moment.
func (c *ListenerContainer) Stuck() []Held {
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	now := r.now()
	var held []Held
	var ids []int64
	r.mu.Lock()
	late := r.count.vitals.calls.calls().Overdue()
	for it, h := range r.holdings() {
		if h.state == HeldStuck || h.state == HeldRunning && h.w != nil && h.w.waits == 0 && h.w.runs(now) >= late {
			held, ids = append(held, r.look(it, h, now)), append(ids, h.w.gid.Load())
		}
	}
	r.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	for i, stack := range stacksOf(ids) {
		held[i].Stack = stack
	}
	slices.SortStableFunc(held, func(a, b Held) int { return cmp.Compare(b.Age, a.Age) })
	return held
}
