package sqs

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// This file is the consumer's way in: from a poll to Receive.

// Receive waits for messages that polls bring, and starts polls for them.
func (c *consumer) Receive(ctx context.Context, limit int) ([]*longshore.Delivery, error) {
	limit = max(limit, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch p := &c.poller; {
		case c.closed:
			return nil, longshore.ErrClosed
		case len(c.fifo.ready) > 0:
			ds := c.fifo.take(limit)
			p.served(limit - len(ds))
			c.startPolls()
			return ds, nil
		case c.down != nil:
			return nil, c.down
		case p.canceled && p.open == 0 && c.fifo.behind == 0:
			return nil, longshore.ErrCanceled
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		c.poller.grant(limit)
		c.startPolls()
		c.changed.wait(ctx, &c.mu)
		c.poller.waiting = false
		if ctx.Err() != nil && len(c.fifo.ready) == 0 {
			c.poller.callOff(time.Now())
			c.wake()
			if c.down == nil && !c.closed && (!c.poller.canceled || c.poller.open > 0) {
				return nil, ctx.Err()
			}
		}
	}
}

// startPolls opens the polls that there is room for.
func (c *consumer) startPolls() {
	for c.down == nil && !c.held.behind && !c.fifo.full() && c.batchDone() {
		p := c.poller.next(len(c.fifo.ready), c.held.length)
		if p == nil {
			return
		}
		c.crew.run(c.life, func() { c.poll(p) })
	}
}

// poll is one receive and what follows from it.
func (c *consumer) poll(p *poll) {
	began := time.Now()
	out, err := c.calls.receive(c.life, p)
	now := time.Now()
	took := now.Sub(began)
	if p.ctx.Err() == nil { // else it was cut off, by us
		c.calls.metrics.End(longshore.OperationReceive, began, codeOr(err))
	}
	if err != nil {
		c.pollFailed(p, err, took)
		return
	}
	c.src.away.Store(false)
	arrived := make([]*held, len(out.Messages))
	for i := range out.Messages {
		arrived[i] = c.arrivals.of(&out.Messages[i], now, took, p.lease)
	}
	if len(arrived) == 0 && p.ctx.Err() == nil && took < p.patience/2 {
		pause(p.ctx, time.Second) // a server that does not wait must not be polled in a loop
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poller.answered(p, len(arrived), took < c.calls.pace.atOnce(), now) {
		c.reports.Event(transport.Event{Kind: transport.EventCleared, Condition: receiving, Text: c.src.title() + ": receiving works again"})
	}
	c.admit(arrived, now)
	c.startPolls()
	c.changed.announce()
	c.wake()
}

// receiving is the condition of polls that fail.
const receiving = "receive"

// pollFailed waits before the next poll, or ends the consumer.
func (c *consumer) pollFailed(p *poll, err error, took time.Duration) {
	code, passing := codeOf(err)
	failure := c.src.failure("receive from "+c.src.title(), err)
	switch f := c.assess(p, code, passing, took); {
	case f.cut:
		pause(c.life, c.calls.pace.atLeast(ghostTime))
	case !f.passing:
		c.fail(failure)
	default:
		if f.report {
			c.reports.Event(transport.Event{Kind: transport.EventNotice, Condition: receiving, Text: "receiving fails and is tried again", Err: failure})
		}
		pause(p.ctx, f.delay)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.poller.ended(p)
	c.startPolls()
	c.changed.announce()
}

// assess finds what a failed poll means.
func (c *consumer) assess(p *poll, code longshore.Code, passing bool, took time.Duration) (f pollFailure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.ctx.Err() != nil {
		return pollFailure{cut: true}
	}
	f = c.poller.failed(p, code, passing, took, time.Now())
	if f.exhausted {
		c.src.away.Store(true)
	}
	// A consumer that was opened again while not all calls fail ends at once, so that it
	// is not ready in between.
	f.passing = f.passing && (code == longshore.CodeBlocked || !c.src.away.Load())
	return f
}

// admit takes in what a poll brought. A message that is early, because SQS could not hide
// it for all of its delay, goes back for the rest, and so does what follows it in its
// group.
func (c *consumer) admit(arrived []*held, now time.Time) {
	var lost []*held
	behind := map[string]bool{} // groups of which an earlier message of this poll goes back
	for _, h := range arrived {
		if c.held.adopt(h, now) {
			continue
		}
		if h.garbled { // left hidden, so that it comes again
			behind[h.group] = true
			c.reports.changed(h)
			continue
		}
		old := c.held.byID[h.id]
		if old != nil && old.settled != nil && old.settled.kind == opReturn {
			old.deadline = now // its return is not needed any more
			c.src.attempts.waitFor(old.settled, now)
		}
		rest := c.src.attempts.early(h.id, now)
		back := rest > 0 || c.calls.fifo && behind[h.group]
		if back {
			behind[h.group] = true
		}
		if old != nil && old.settled != nil && old.settled.kind == opDelete {
			// Its work is done and the broker does not know that yet: the message is deleted
			// by whatever receipt it came with.
			old.settled.receipt, old.settled.unsure = h.receipt, false
			c.send(&op{kind: opDelete, receipt: h.receipt, h: h, quiet: true}, now)
			continue
		}
		if old != nil && old.settled == nil { // its lease has ended
			lost = c.lose(old, lost, now)
		}
		c.held.add(h)
		if back || c.closed || !c.poller.takesIn(c.calls.maxReceives > 0) {
			c.giveBack(h, rest, now)
			continue
		}
		c.held.keep(h, now)
		c.fifo.push(h)
	}
	c.reports.leaseLost(lost, "it was delivered again")
}

// lose ends the life of a message here: the broker will redeliver it. It adds those that
// have to be reported. On a FIFO queue what follows in its group goes back, so that the
// group's order holds.
func (c *consumer) lose(h *held, lost []*held, now time.Time) []*held {
	if c.held.survives(h, now) {
		return lost
	}
	copied := h.of != nil
	if c.held.forget(h); copied {
		return lost
	}
	attempt := h.d.Attempt
	if !c.fifo.remove(h) && h.handed && h.settled == nil {
		lost = append(lost, h)
		attempt++ // a run that outlasted its lease has failed
	}
	c.src.attempts.next(h.id, h.receives, attempt)
	if !c.calls.fifo {
		return lost
	}
	for _, f := range c.fifo.takeBehind(h) {
		c.giveBack(f, 0, now)
	}
	for _, f := range c.held.inOrder() {
		if f.token > h.token && f.settled == nil && f.of == nil && f.group == h.group {
			lost = append(lost, f)
			c.giveBack(f, 0, now)
		}
	}
	return lost
}

// returnUnused gives back everything that Receive has not handed out.
func (c *consumer) returnUnused(now time.Time) {
	for _, h := range c.fifo.takeAll() {
		c.giveBack(h, 0, now)
	}
}

// endPolls waits for open polls, which are cut off when grace is over. A caller that is
// called off earlier leaves them what remains of it: the broker may have handed out what
// they are about to bring.
func (c *consumer) endPolls(ctx context.Context) error {
	if c.poller.unwant(time.Now(), c.calls.grace()) {
		c.wake()
	}
	return c.changed.until(ctx, &c.mu, c.poller.quit)
}

// Cancel stops polling. An answer on its way is waited for a moment; what it brings goes
// back, visible at once, or where the queue counts receives is handed out.
func (c *consumer) Cancel(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.poller.canceled = true
	c.changed.announce()
	c.poller.ending = true
	err := c.endPolls(ctx)
	c.poller.ending = false
	// What waits behind heads is handed out like the rest: nothing arrives that could need
	// its place, and heads that are not started any more never end.
	c.fifo.release()
	c.changed.announce()
	return err
}

// Pause stops polling. What was handed out stays held; what was not goes back, unless the
// queue counts that against its messages.
func (c *consumer) Pause(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	p := &c.poller
	p.paused = true
	if c.calls.maxReceives == 0 && !p.waiting && p.interrupted.IsZero() {
		p.callOff(time.Now()) // what no handler has begun goes back soon
		c.wake()
	}
	return c.endPolls(ctx)
}

// Resume polls again.
func (c *consumer) Resume(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.poller.resume()
	c.startPolls()
	c.changed.announce()
	return nil
}

// Resize needs nothing: polls are for what Receive has room for.
func (c *consumer) Resize(context.Context, int) error { return nil }

// Buffered is how many messages wait here for Receive.
func (c *consumer) Buffered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fifo.len()
}
