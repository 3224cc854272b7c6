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
	HeldMoving  HeldState = "moving"  // waits, until Due, to be moved to the dead-letter destination again
	HeldReady   HeldState = "ready"   // waits for a worker or a permit
	HeldBehind  HeldState = "behind"  // waits for an earlier one of its key or partition
)

// Held is a delivery that a container holds.
type Held struct {
	// Record names it for RetryNow, DeadLetterNow and ReleaseNow: the message's id, or
	// where it has none topic/partition/position.
	Record string
	State  HeldState // what it does or waits for
	// DeliveryFacts are those of the delivery. Age is that of the handler's call, of what
	// no handler has the time since it was received.
	DeliveryFacts
	Topic string    // or queue
	Due   time.Time // of what is parked or to be moved
	Stack string    // of the handler's goroutine; only from Stuck
}

// holding is an item in its place.
type holding struct {
	state HeldState // what the item does or waits for
	w     *worker   // that works on it; nil: none does
}

// inventory is a view of everything that is held, for whoever reports or searches it. It
// reads what the run's lock guards, so it is used and dropped under that lock.
type inventory struct {
	workers  []*worker                     // with what they work on
	manual   map[*longshore.Delivery]*item // with manual settling: what handlers have not settled; else nil
	sched    *dispatch.Scheduler[item]     // with what waits
	attempts int                           // Config.Redelivery.MaxAttempts, which descriptions name
}

// all goes over what is held: first what runs, then what waits for its time, for a worker
// or for others. It leaves out what is on its way to the broker at this moment.
func (v inventory) all() iter.Seq2[*item, holding] {
	return func(yield func(*item, holding) bool) {
		_ = v.eachRunning(yield) && v.eachWaiting(yield)
	}
}

func (v inventory) eachRunning(yield func(*item, holding) bool) bool {
	of := map[*longshore.Delivery]*worker{}
	for _, w := range v.workers {
		h := holding{HeldRunning, w}
		if w.stuck {
			h.state = HeldStuck
		}
		switch {
		case v.manual != nil: // the handler may have settled it long ago
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
	for d, it := range v.manual {
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

func (v inventory) eachWaiting(yield func(*item, holding) bool) bool {
	for t := range v.sched.All() {
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
	r := c.current()
	if r == nil {
		return nil, 0
	}
	now := r.now()
	r.locked(func() { held, total = r.inventory().list(most, now) })
	return held, total
}

// list describes what is held, in the order in which it is shown, at most so many (0: all).
func (v inventory) list(most int, now time.Time) (held []Held, total int) {
	type found struct {
		it      *item     // the item
		holding           // its place
		at      time.Time // what is sorted by
	}
	var all []found
	for it, h := range v.all() {
		all = append(all, found{it, h, v.sortsBy(it, h)})
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(rank(a.state), rank(b.state)), a.at.Compare(b.at))
	})
	total = len(all)
	if most > 0 && total > most {
		all = all[:most]
	}
	for _, f := range all {
		held = append(held, v.describe(f.it, f.holding, now))
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

func (v inventory) sortsBy(it *item, h holding) time.Time {
	switch rank(h.state) {
	case 0:
		return v.calledAt(it, h)
	case 1:
		return it.Due()
	}
	return time.Time{} // as they stand
}

// calledAt is when the handler was called; zero: it was not yet.
func (v inventory) calledAt(it *item, h holding) time.Time {
	if v.manual != nil {
		return it.started
	}
	if started := h.w.busy.Load(); started != 0 {
		return time.Unix(0, started)
	}
	return time.Time{}
}

// describe is what an operator sees of an item.
func (v inventory) describe(it *item, at holding, now time.Time) (h Held) {
	h = Held{Record: it.record(), State: at.state, DeliveryFacts: *factsOfItem(it, it.d), Topic: it.d.Origin.Topic}
	h.Of = v.attempts
	since := h.ReceivedAt
	switch rank(at.state) {
	case 0:
		since = v.calledAt(it, at)
	case 1:
		h.Due = it.Due()
	}
	if !since.IsZero() {
		h.Age = max(now.Sub(since), 0)
	}
	return h
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
	r := c.current()
	if r == nil {
		return nil
	}
	now := r.now()
	var held []Held
	var ids []int64
	r.locked(func() { held, ids = r.inventory().late(r.count.vitals.calls.calls().Overdue(), now) })
	if len(held) == 0 {
		return nil
	}
	for i, stack := range stacksOf(ids) {
		held[i].Stack = stack
	}
	slices.SortStableFunc(held, func(a, b Held) int { return cmp.Compare(b.Age, a.Age) })
	return held
}

// late describes the deliveries whose calls have run for limit or are stuck, with the
// numbers of their goroutines.
func (v inventory) late(limit time.Duration, now time.Time) (held []Held, ids []int64) {
	for it, h := range v.all() {
		if h.state == HeldStuck || h.state == HeldRunning && h.w != nil && h.w.waits == 0 && h.w.runs(now) >= limit {
			held, ids = append(held, v.describe(it, h, now)), append(ids, h.w.gid.Load())
		}
	}
	return held, ids
}
