package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// settler is the consumer as its deliveries see it. The context of a verb is
// not used: what was done is settled, also when its context is over.
type settler struct{ c *consumer }

func (s *settler) Ack(_ context.Context, token uint64) error {
	return s.c.settle(token, longshore.Settlement{Verb: longshore.VerbAck})
}

func (s *settler) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	c := s.c
	switch {
	case delay <= 0:
	case c.cfg.Without&Delay != 0:
		return c.unsupported(fmt.Sprintf("nack with a delay of %s", delay), "this queue has no delays")
	case c.q.props.maxDelay > 0 && delay > c.q.props.maxDelay:
		return c.unsupported(fmt.Sprintf("nack with a delay of %s", delay), fmt.Sprintf("the longest is %s", c.q.props.maxDelay))
	}
	return c.settle(token, longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt})
}

func (s *settler) Reject(_ context.Context, token uint64, reason error) error {
	if s.c.q.props.deadLetter == "" {
		return s.c.unsupported("reject a delivery", "this queue has no DeadLetter")
	}
	return s.c.settle(token, longshore.Settlement{Verb: longshore.VerbReject, Reason: reason})
}

func (s *settler) Extend(_ context.Context, token uint64, lease time.Duration) error {
	c := s.c
	if c.cfg.Without&Extend != 0 {
		return c.unsupported("extend a delivery", "this queue has no extension")
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

func (c *consumer) unsupported(op, why string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: op + " of " + c.q.title(), Source: c.q.name, Err: errors.New(why)}
}

// open returns the slot of a token that can be settled.
func (c *consumer) open(token uint64) (uint32, *slot, error) {
	if c.ended != nil {
		if c.closed() {
			return 0, nil, longshore.ErrClosed
		}
		return 0, nil, longshore.ErrLost
	}
	idx, s := c.find(token)
	switch {
	case s == nil:
		return 0, nil, longshore.ErrLost
	case s.pending:
		return 0, nil, longshore.ErrSettled
	}
	return idx, s, nil
}

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
	c.accepted = append(c.accepted, idx)
	switch {
	case c.b.faults.delay(OpSettle) == 0 && 2*len(c.accepted) >= c.window:
		c.carryOut()
	case c.linger == nil:
		c.linger = c.b.clock.AfterFunc(wait, c.lingered)
	}
	return nil
}

func (c *consumer) lingered() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.carryOut()
}

// carryOut does what was accepted, in order.
func (c *consumer) carryOut() {
	if c.linger != nil {
		c.linger.Stop()
		c.linger = nil
	}
	if c.ended != nil || len(c.accepted) == 0 {
		return
	}
	for _, idx := range c.accepted {
		c.apply(idx, c.slots[idx].verdict)
	}
	c.accepted = c.accepted[:0]
	c.q.dispatch()
}

// apply is the moment in which a settlement takes effect at the broker.
func (c *consumer) apply(idx uint32, v longshore.Settlement) {
	q := c.q
	e, d := c.vacate(idx)
	if err := c.b.faults.settling(); err != nil {
		c.reportFailed(d, v, &longshore.Error{Code: longshore.CodeSettle, Op: v.Verb.String() + " a delivery of " + q.title(),
			Source: q.name, Err: err, Hint: "the message is delivered again"})
		c.returned(e)
		return
	}
	switch v.Verb {
	case longshore.VerbAck:
		q.acked++
		q.gone(e)
	case longshore.VerbReject:
		q.bury(e)
	case longshore.VerbNack:
		c.nacked(e, v)
	case longshore.VerbExtend:
	}
}

// nacked gives a message back with the attempt it was told to carry.
func (c *consumer) nacked(e *entry, v longshore.Settlement) {
	delivered := c.attempt(e)
	next := v.Attempt
	if next <= 0 || c.q.props.countsReturns {
		next = delivered + 1
	}
	e.attempt = next
	c.q.giveBack(e, next > delivered, v.Delay)
}
