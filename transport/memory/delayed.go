package memory

import (
	"time"

	"github.com/longshore-go/longshore"
)

// due is something a queue does at a point in time: a delayed message becomes
// ready, or a lease ends.
type due struct {
	at    time.Time
	e     *entry // delayed
	c     *consumer
	token uint64
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
			d.c.leaseEnd(d.token, now)
		}
	}
	q.arm()
	q.dispatch()
}

// lease starts the lease of a delivery that was just given to c.
func (c *consumer) lease(idx uint32) {
	p := &c.q.props
	length := p.lease
	if p.keepLease {
		length = p.keptFor
	}
	if length > 0 {
		c.extend(idx, length)
	}
}

// extend sets the end of a lease. Ends that are no longer true are found out
// when they come.
func (c *consumer) extend(idx uint32, length time.Duration) {
	s := &c.slots[idx]
	s.until = c.b.clock.Now().Add(length)
	c.q.schedule(due{at: s.until, c: c, token: s.token(idx)})
}

func (c *consumer) leaseEnd(token uint64, now time.Time) {
	idx, s := c.find(token)
	if s == nil || s.pending || s.until.After(now) {
		return
	}
	c.takeBack(idx)
}

// takeBack gives a message back to the queue and tells who holds its delivery.
func (c *consumer) takeBack(idx uint32) {
	e, d := c.vacate(idx)
	if d == nil {
		c.unbuffer(idx)
	}
	defer c.returned(e)
	if d == nil {
		return
	}
	cause := &longshore.Error{Code: longshore.CodeLeaseLost, Op: "hold a delivery of " + c.q.title(), Source: c.q.name,
		Err:  longshore.ErrLost,
		Hint: "a longer Lease, or KeepLease"}
	if d.Lose(cause) {
		c.tellLost([]*longshore.Delivery{d}, cause)
	}
}
