package container

import (
	"slices"
	"time"
)

// awayMost bounds what is counted of deliveries that wait at the broker. Up to twice as many
// are remembered, so that forgetting costs little for each.
const awayMost = 1 << 16

// delayed is what the broker holds for a while: the deliveries that were given back
// with a delay, so that the report of a drain can say how many are still there. The
// oldest are forgotten first. Guarded by guard.mu.
type delayed struct {
	due   []time.Time // when each of them comes again
	sweep int         // length of due at which the elapsed ones are dropped
	until time.Time   // when the last of them comes again: the container is not idle before
}

func (d *delayed) add(due, now time.Time) {
	if !due.After(now) {
		return
	}
	if due.After(d.until) {
		d.until = due
	}
	d.due = append(d.due, due)
	if len(d.due) > max(d.sweep, 1024) {
		d.count(now)
		if over := len(d.due) - awayMost; over > 0 {
			d.due = slices.Delete(d.due, 0, over)
		}
		d.sweep = 2 * len(d.due)
	}
}

// failed forgets one that the broker did not take after all: it comes back without a delay.
// Which one does not matter, since they are only counted.
func (d *delayed) failed(delay time.Duration) {
	if n := len(d.due); delay > 0 && n > 0 {
		d.due = d.due[:n-1]
	}
}

// count drops what is due and returns how many are left.
func (d *delayed) count(now time.Time) int {
	d.due = slices.DeleteFunc(d.due, func(t time.Time) bool { return !t.After(now) })
	return len(d.due)
}
