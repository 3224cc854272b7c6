package memory

import "time"

// due is something a queue does at a point in time: a delayed message becomes
// ready, or a lease ends.
type due struct {
	at    time.Time // the point in time
	e     *entry    // a delayed message; nil: a lease
	c     *consumer // that holds the lease
	token uint64    // of the delivery under it
}

func sooner(a, b due) bool { return a.at.Before(b.at) }

func (q *queue) schedule(d due) {
	q.due.less = sooner
	q.due.push(d)
	q.arm()
}

// arm makes the timer fire at the earliest point.
func (q *queue) arm() {
	if q.due.len() == 0 {
		return
	}
	at := q.due.items[0].at
	if q.timer != nil {
		if !at.Before(q.at) {
			return
		}
		q.timer.Stop()
	}
	q.at = at
	q.timer = q.b.clock.AfterFunc(at.Sub(q.b.clock.Now()), q.fire)
}

func (q *queue) fire() {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	q.timer = nil
	now := q.b.clock.Now()
	for q.due.len() > 0 && !q.due.items[0].at.After(now) {
		d := q.due.pop()
		switch {
		case d.e != nil:
			q.delayed--
			q.ready.put(d.e)
		default:
			q.endLease(d, now)
		}
	}
	q.arm()
	q.dispatch()
}

// endLease takes a message back whose lease has ended and was not extended since.
func (q *queue) endLease(d due, now time.Time) {
	if idx, s := d.c.held.find(d.token); s != nil && !s.pending && !s.until.After(now) {
		d.c.loseFrom(idx)
	}
}
