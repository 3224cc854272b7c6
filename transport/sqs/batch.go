package sqs

import (
	"errors"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
)

// batcher collects operations of one kind; the consumer's mu guards it.
type batcher struct {
	queue   []*op
	running int // calls
	most    int
}

// flushFactor is how many times more calls run at once while somebody waits for
// everything to be carried out.
const flushFactor = 4

// maxTries is how often an operation is sent when it fails for passing reasons, and
// how long as long as nobody waits for it and its message is ours: to give it up means
// that the message is handled once more.
const (
	maxTries = 8
	lasting  = time.Minute
)

// another tells whether an operation that failed for a passing reason is sent again.
// The caller holds mu.
func (c *consumer) another(o *op, now time.Time) bool {
	return o.tries+1 < maxTries || c.flushes == 0 && !c.closed && o.h.deadline.After(now) && now.Sub(o.since) < lasting
}

// take cuts a batch off that should go now: a full one, or all that waited long
// enough. next is when to look again.
func (b *batcher) take(now time.Time, linger time.Duration, flush bool) (batch []*op, next time.Time) {
	most := b.most
	if flush { // somebody waits for all of them
		most *= flushFactor
	}
	if b.running >= most {
		return nil, time.Time{} // one that ends wakes the loop
	}
	var ready []*op
	ripe := flush
	for _, o := range b.queue {
		if o.next.After(now) {
			next = earlier(next, o.next)
			continue
		}
		if len(ready) == maxBatch || len(ready) > 0 && (o.alone || ready[0].alone) {
			break
		}
		if ready == nil {
			ready = make([]*op, 0, min(len(b.queue), maxBatch))
		}
		ready = append(ready, o)
		if at := o.since.Add(linger); !at.After(now) || o.tries > 0 {
			ripe = true
		} else {
			next = earlier(next, at)
		}
	}
	if len(ready) == 0 || len(ready) < maxBatch && !ripe && !ready[0].alone {
		return nil, next
	}
	if b.queue[len(ready)-1] == ready[len(ready)-1] { // nothing was passed over
		b.queue = b.queue[len(ready):]
	} else {
		b.queue = slices.DeleteFunc(b.queue, func(o *op) bool { return slices.Contains(ready, o) })
	}
	b.running++
	return ready, time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// loop extends leases, finds those that ended and sends batches, each at its
// time.
func (c *consumer) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(max(time.Until(c.turn(time.Now())), 0))
		select {
		case <-c.kick:
		case <-timer.C:
		case <-c.life.Done():
			return
		}
	}
}

// turn does what is due and returns when to come again.
func (c *consumer) turn(now time.Time) time.Time {
	next := now.Add(time.Hour)
	c.mu.Lock()
	extend, gone := c.dueLeases(now)
	var lost []*longshore.Delivery
	var failed []*op
	for _, h := range gone {
		switch {
		case h.settled == nil:
			lost = c.lose(h, lost)
		case !c.survives(h, now): // a rejection that did not come through in time
			failed = append(failed, c.lateRejection(h)...)
		}
	}
	switch {
	case len(c.leases) == 0:
	case c.batches[opExtend].running >= c.batches[opExtend].most:
		next = now.Add(100 * time.Millisecond)
	default:
		next = earlier(next, c.leases[0].due)
	}
	for kind := range opExtend {
		for {
			batch, at := c.batches[kind].take(now, c.linger, c.flushes > 0)
			if !at.IsZero() {
				next = earlier(next, at)
			}
			if batch == nil {
				break
			}
			c.crew.run(c.life, func() { c.carry(kind, batch) })
		}
	}
	next = earlier(next, c.calledOff(now))
	next = earlier(next, c.cutLate(now))
	c.startPolls()
	c.mu.Unlock()
	for _, batch := range extend {
		c.crew.run(c.life, func() { c.extend(batch) })
	}
	c.reportLeases(lost, "its visibility timeout ended")
	c.tellFailed(failed, errors.New("its lease ended before the copy in the dead-letter queue was confirmed"))
	return next
}

// lateRejection gives up a move whose message is visible again. The caller holds mu.
func (c *consumer) lateRejection(h *held) []*op {
	b := &c.batches[opDead]
	i := slices.Index(b.queue, h.settled)
	if i < 0 {
		return nil // on its way: its answer decides
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	if o := c.finish(h.settled, errGone); o != nil {
		return []*op{o}
	}
	return nil
}

// calledOff ends polls that a Receive which was called off has left behind, and
// gives back what they brought. It returns when to look again. The caller holds mu.
func (c *consumer) calledOff(now time.Time) time.Time {
	in := &c.intake
	far := now.Add(time.Hour)
	if in.interrupted.IsZero() || in.waiting {
		return far
	}
	if in.polls > 0 {
		if at := in.interrupted.Add(c.grace()); at.After(now) {
			return at
		}
		c.cutPolls()
	}
	if len(in.buffer)+in.lines.count > 0 {
		if at := in.interrupted.Add(unwanted); at.After(now) {
			return at
		}
		c.releaseBuffer()
	}
	return far
}
