package container

import (
	"slices"
	"time"
)

// awayMost bounds what is remembered of deliveries that wait at the broker.
const awayMost = 1 << 16

// away remembers when the deliveries given back with a delay are due, so that the
// report of a drain can say how many the broker still keeps; the oldest are
// forgotten first. Guarded by engine.mu.
type away struct {
	due   []time.Time
	sweep int // length at which those that are due are dropped
}

func (a *away) add(due, now time.Time) {
	if !due.After(now) {
		return
	}
	a.due = append(a.due, due)
	if len(a.due) > max(a.sweep, 1024) {
		a.count(now)
		if over := len(a.due) - awayMost; over > 0 {
			a.due = slices.Delete(a.due, 0, over)
		}
		a.sweep = min(2*len(a.due), awayMost)
	}
}

// count drops what is due and returns how many are left.
func (a *away) count(now time.Time) int {
	a.due = slices.DeleteFunc(a.due, func(t time.Time) bool { return !t.After(now) })
	return len(a.due)
}
