package container

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// reportStuck reports handlers that have run too long, once each, with the stack of their
// goroutine. The dump of stacks is made without the lock.
func (m *monitor) reportStuck(now time.Time) {
	limit := m.s.stuck.After
	if limit < 0 {
		return
	}
	var found []Event
	var ids []int64
	m.locked(func() { found, ids = m.findStuckLocked(now, limit) })
	if len(found) == 0 {
		return
	}
	stacks := stacksOf(ids)
	for i, e := range found {
		e.Stack = stacks[i]
		m.emit(e)
	}
}

// findStuckLocked marks the handlers that have run for limit and gives each a replacement where
// that is wanted. It returns their events without the stacks, and their goroutines.
func (m *monitor) findStuckLocked(now time.Time, limit time.Duration) (found []Event, ids []int64) {
	for _, w := range m.pool.workers {
		age := w.runs(now)
		if w.stuck || age == 0 || age < limit {
			continue
		}
		w.stuck = true
		m.count.stuck++
		f := m.held.inventory(m.pool).workedOn(w)
		f.Age = age
		found = append(found, Event{Kind: EventStuck, Delivery: f,
			Text: fmt.Sprintf("the handler of message %.64s (key %q) has not returned for %v", f.MessageID, f.Key, round(f.Age))})
		ids = append(ids, w.gid.Load())
		if m.s.stuck.Action == StuckReplace {
			m.pool.replace(w)
		}
	}
	if len(found) > 0 {
		m.hand.setTarget(m.pool.target)
	}
	return found, ids
}

// replace adds a worker for one that is stuck.
func (p *pool) replace(w *worker) {
	if w.hung { // it is replaced beyond the bounds: the place within them is free again
		p.unhung(w)
	}
	w.extra = true
	p.replacing++
}

// unstuck ends that of a handler that has returned after all.
func (p *pool) unstuck(w *worker) {
	w.stuck = false
	if w.extra {
		w.extra = false
		p.replacing--
	}
}

// callsSeen is what a look at the workers finds about the calls that run.
type callsSeen struct {
	running    int       // calls that run
	stuck      int       // of them, reported as stuck
	stuckSince time.Time // of the oldest of those
	partitions string    // that stuck calls hold up, for a sentence; "": the source has none
	old        int       // calls that have run for longer than oldCall
	overdue    int       // calls that have run far longer than others do
	oldest     Call      // of those that do not sit in Delivery.Wait
	w          *worker   // that runs it
}

// seeCalls looks at all workers. overdue is the age from which a call counts as one.
func seeCalls(workers []*worker, now time.Time, overdue time.Duration) (seen callsSeen) {
	for _, w := range workers {
		began := w.busy.Load()
		if began == 0 {
			continue
		}
		at := time.Unix(0, began)
		seen.running++
		if w.stuck {
			seen.stuck++
			seen.stuckSince = oldestOf(seen.stuckSince, at)
		}
		age := now.Sub(at)
		if age > oldCall {
			seen.old++
		}
		if w.waits > 0 {
			continue
		}
		if age >= overdue {
			seen.overdue++
		}
		if before := seen.oldest.Since; before.IsZero() || at.Before(before) {
			seen.oldest.Since, seen.w = at, w
		}
	}
	return seen
}

func oldestOf(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// partsShown is how many stuck partitions a reason names.
const partsShown = 3

// stuckPartitions names the partitions whose handlers are stuck, and for how long: the
// container works, and some of its log does not move.
func stuckPartitions(workers []*worker, now time.Time) string {
	ages := map[int32]time.Duration{}
	for _, w := range workers {
		d := w.d
		if len(w.batch) > 0 {
			d = w.batch[0].d
		}
		if w.stuck && d != nil {
			ages[d.Origin.Partition] = max(ages[d.Origin.Partition], w.runs(now))
		}
	}
	parts := slices.SortedFunc(maps.Keys(ages), func(a, b int32) int { return cmp.Compare(ages[b], ages[a]) })
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == partsShown:
			fmt.Fprintf(&b, " and %d more", len(parts)-i)
			return b.String() + ")"
		case i > 0:
			b.WriteString(", ")
		default:
			b.WriteString(" (")
		}
		fmt.Fprintf(&b, "partition %d stuck for %v", p, round(ages[p]))
	}
	if len(parts) > 0 {
		b.WriteString(")")
	}
	return b.String()
}

// calls is what the workers show now. overdue is the age from which a call counts as one;
// partitioned says that the source has partitions, which stuck calls hold up.
func (v inventory) calls(now time.Time, overdue time.Duration, partitioned bool) callsSeen {
	seen := seeCalls(v.workers, now, overdue)
	if seen.overdue > 0 || seen.old > 0 && seen.w != nil {
		f := v.workedOn(seen.w)
		seen.oldest.Record, seen.oldest.Key = f.MessageID, f.Key
	}
	if seen.stuck > 0 && partitioned {
		seen.partitions = stuckPartitions(v.workers, now)
	}
	return seen
}

// workedOn identifies what a worker works on; of a batch the first.
func (v inventory) workedOn(w *worker) *DeliveryFacts {
	switch {
	case len(w.batch) > 0:
		return factsOfItem(w.batch[0], w.batch[0].d)
	case w.d == nil:
		return &DeliveryFacts{}
	case v.manual != nil:
		return factsOfItem(v.manual[w.d], w.d)
	}
	return factsOfItem(w.it, w.d)
}

// stacksOf finds goroutines in a dump of all; "" for one that is gone.
func stacksOf(ids []int64) []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 64<<20 {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := make([]string, len(ids))
	for part := range bytes.SplitSeq(buf, []byte("\n\n")) {
		for i, id := range ids {
			if bytes.HasPrefix(part, fmt.Appendf(nil, "goroutine %d ", id)) {
				stacks[i] = string(part)
			}
		}
	}
	return stacks
}
