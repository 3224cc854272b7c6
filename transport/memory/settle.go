package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// The consumer is the settler of its deliveries. The context of a verb is not used: work
// that was done is settled even when its context is over.

// Ack accepts the removal of the message.
func (c *consumer) Ack(_ context.Context, token uint64) error {
	return c.settle(token, longshore.Settlement{Verb: longshore.VerbAck})
}

// Nack accepts the return of the message, after a delay where the queue has delays.
func (c *consumer) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	switch {
	case delay <= 0:
	case c.cfg.Without&Delay != 0:
		return c.q.unsupported(fmt.Sprintf("nack with a delay of %s", delay), "this queue has no delays")
	case c.q.props.maxDelay > 0 && delay > c.q.props.maxDelay:
		return c.q.unsupported(fmt.Sprintf("nack with a delay of %s", delay), fmt.Sprintf("the longest is %s", c.q.props.maxDelay))
	}
	return c.settle(token, longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt})
}

// Reject accepts a move to the queue's dead-letter queue.
func (c *consumer) Reject(_ context.Context, token uint64, reason error) error {
	if c.q.props.deadLetter == "" {
		return c.q.unsupported("reject a delivery", "this queue has no DeadLetter")
	}
	return c.settle(token, longshore.Settlement{Verb: longshore.VerbReject, Reason: reason})
}

// Extend moves the end of the lease. A kept lease is only ever shortened by it, since
// its length is the longest that the queue allows.
func (c *consumer) Extend(_ context.Context, token uint64, lease time.Duration) error {
	if c.cfg.Without&Extend != 0 {
		return c.q.unsupported("extend a delivery", "this queue has no extension")
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	idx, sl, err := c.open(token)
	if err != nil {
		return err
	}
	p := &c.q.props
	if p.lease > 0 && (!p.keepLease || c.b.clock.Now().Add(lease).After(sl.until) && !sl.until.IsZero()) {
		c.extend(idx, lease)
	}
	return nil
}

func (q *queue) unsupported(op, why string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: op + " of " + q.title(), Source: q.name, Err: errors.New(why)}
}

// open returns the slot of a token that can still be settled.
func (c *consumer) open(token uint64) (uint32, *slot, error) {
	if c.ended != nil {
		if c.closed() {
			return 0, nil, longshore.ErrClosed
		}
		return 0, nil, longshore.ErrLost
	}
	idx, s := c.held.find(token)
	switch {
	case s == nil:
		return 0, nil, longshore.ErrLost
	case s.pending:
		return 0, nil, longshore.ErrSettled
	}
	return idx, s, nil
}

// settle accepts a verdict, and carries it out at once where nothing lingers.
func (c *consumer) settle(token uint64, v longshore.Settlement) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	idx, s, err := c.open(token)
	if err != nil {
		return err
	}
	wait := c.cfg.SettleLinger + c.b.faults.delay(OpSettle)
	if wait <= 0 {
		c.apply(idx, v)
		c.q.dispatch()
		return nil
	}
	s.pending, s.verdict = true, v
	c.settling.add(idx)
	if c.b.faults.delay(OpSettle) == 0 && 2*len(c.settling.accepted) >= c.window {
		c.carryOut()
		return nil
	}
	c.settling.later(c.b.clock, wait, func() {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		c.carryOut()
	})
	return nil
}

// carryOut applies what was accepted, in order.
func (c *consumer) carryOut() {
	c.settling.stop()
	if c.ended != nil || len(c.settling.accepted) == 0 {
		return
	}
	for _, idx := range c.settling.take() {
		c.apply(idx, c.held.at(idx).verdict)
	}
	c.q.dispatch()
}

// apply is the moment in which a settlement takes effect at the broker.
func (c *consumer) apply(idx uint32, v longshore.Settlement) {
	q := c.q
	e, d := c.held.remove(idx)
	if err := c.b.faults.settling(); err != nil {
		c.settleFailed(d, v, err)
		q.takeBack(e)
		return
	}
	switch v.Verb {
	case longshore.VerbAck:
		q.acked++
		q.gone(e)
	case longshore.VerbReject:
		q.deadLetter(e)
	case longshore.VerbNack:
		q.nacked(e, c.cfg.attempt(e), v)
	case longshore.VerbExtend:
	}
}

// settleFailed reports a settlement that was accepted and not carried out.
func (c *consumer) settleFailed(d *longshore.Delivery, v longshore.Settlement, cause error) {
	c.settling.failed++
	c.notify.SettleFailed(d, v, &longshore.Error{Code: longshore.CodeSettle, Op: v.Verb.String() + " a delivery of " + c.q.title(),
		Source: c.q.name, Err: cause, Hint: "the message will be redelivered"})
}

// extend sets the end of a lease. An earlier end stays scheduled and is ignored when it
// comes.
func (c *consumer) extend(idx uint32, length time.Duration) {
	s := c.held.at(idx)
	s.until = c.b.clock.Now().Add(length)
	c.q.schedule(due{at: s.until, c: c, token: s.token(idx)})
}

// lose gives a message back to the queue and reports the loss to whoever holds its
// delivery.
func (c *consumer) lose(idx uint32) {
	e, d := c.held.remove(idx)
	defer c.q.takeBack(e)
	if d == nil {
		return
	}
	cause := &longshore.Error{Code: longshore.CodeLeaseLost, Op: "hold a delivery of " + c.q.title(), Source: c.q.name,
		Err: longshore.ErrLost, Hint: "set a longer Lease, or KeepLease"}
	if d.Lose(cause) {
		c.notify.Lost([]*longshore.Delivery{d}, cause)
	}
}

// loseFrom loses a message and, with it, the later ones of its key or partition. They must
// go back at the same moment: what is buffered, and what is returned only after the loss is
// known, would otherwise reach the handler before the lost message is delivered again.
func (c *consumer) loseFrom(idx uint32) {
	first := c.held.at(idx).e
	c.lose(idx)
	for _, later := range c.held.unsettled() {
		if e := c.held.at(later).e; first.precedes(e, c.q.props.partitions > 0) {
			c.lose(later)
		}
	}
}

// Backlog returns how many messages wait in the queue, without delayed ones.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	if err := c.b.slow(ctx, OpBacklog); err != nil {
		return 0, time.Time{}, err
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.ended != nil {
		return 0, time.Time{}, c.ended
	}
	return int64(c.q.ready.len() + c.q.waiting), c.b.clock.Now(), nil
}

// Buffered returns how many messages Receive would hand out at once.
func (c *consumer) Buffered() int {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.held.buffer.len()
}

// Capabilities is what the queue has.
func (c *consumer) Capabilities() transport.Capabilities {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	cfg := c.q.props.over(c.cfg)
	caps := cfg.capabilities()
	caps.KeepsPlace = caps.KeepsPlace || c.q.topic != nil // messages published while no one is subscribed are not for us
	caps.MaxMessageBytes = c.b.cfg.MaxMessageBytes
	return caps
}
