package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// Cancel stops the queue from serving the consumer.
func (c *consumer) Cancel(ctx context.Context) error {
	if closed := c.depart(); closed {
		return longshore.ErrClosed
	}
	if err := c.b.slow(ctx, OpCancel); err != nil {
		return err
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.canceled || c.ended != nil {
		return nil
	}
	c.canceled = true
	c.signal()
	c.q.promote()
	c.q.dispatch()
	return nil
}

// depart notes that the end is wanted, and tells whether it has come.
func (c *consumer) depart() (closed bool) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.leaving = true
	return c.closed()
}

// Release gives the buffer back.
func (c *consumer) Release(ctx context.Context) error {
	if err := c.b.slow(ctx, OpRelease); err != nil {
		return err
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed() {
		return longshore.ErrClosed
	}
	c.putBack()
	c.q.dispatch()
	return nil
}

// Flush carries out what was accepted.
func (c *consumer) Flush(ctx context.Context) error {
	if err := c.b.slow(ctx, OpFlush); err != nil {
		return err
	}
	if err := sleep(ctx, c.b.clock, c.inFlight()); err != nil {
		return err
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.carryOut()
	n := c.failed
	c.failed = 0
	switch {
	case n > 0:
		return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.q.title(), Source: c.q.name,
			Err: fmt.Errorf("%d not carried out", n), Hint: "their messages are delivered again"}
	case c.closed():
		return longshore.ErrClosed
	}
	return nil
}

// inFlight is how long what was accepted is on its way.
func (c *consumer) inFlight() time.Duration {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if len(c.accepted) == 0 {
		return 0
	}
	return c.b.faults.delay(OpSettle)
}

// Close ends the consumer. If ctx ends before the broker answers, it ends as if
// the connection had been cut.
func (c *consumer) Close(ctx context.Context) error {
	if closed := c.depart(); closed {
		return nil
	}
	err := c.b.slow(ctx, OpClose)
	if err == nil {
		err = sleep(ctx, c.b.clock, c.inFlight())
	}
	c.shut(err == nil)
	if err != nil {
		err = &longshore.Error{Code: longshore.CodeTimeout, Op: "close the consumer of " + c.q.title(), Source: c.q.name, Err: err}
	}
	return errors.Join(err, c.tell.wait(ctx))
}

// shut ends the consumer at the broker; answered tells whether settlements that
// were accepted still arrive.
func (c *consumer) shut(answered bool) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.ended == nil {
		if answered {
			c.carryOut()
		}
		c.surrender(longshore.ErrLost)
		c.canceled = true
		c.leave()
	}
	c.ended = longshore.ErrClosed
	c.signal()
}

// fail ends the consumer from the broker's side.
func (c *consumer) fail(err error) {
	if c.ended != nil {
		return
	}
	c.ended = err
	c.canceled = true
	cause := &lostError{err}
	lost := c.surrender(cause)
	c.leave()
	c.signal()
	if len(lost) > 0 {
		c.tellLost(lost, cause)
	}
	if !c.leaving {
		c.down(err)
	}
}

// lostError makes the reason for a loss wrap ErrLost.
type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{longshore.ErrLost, e.error} }

// surrender gives everything back to the queue and returns the deliveries that
// were open. Settlements that were accepted but not carried out have failed.
func (c *consumer) surrender(cause error) []*longshore.Delivery {
	for _, idx := range c.accepted {
		s := &c.slots[idx]
		c.reportFailed(s.d, s.verdict, &longshore.Error{Code: longshore.CodeSettle, Op: s.verdict.Verb.String() + " a delivery of " + c.q.title(),
			Source: c.q.name, Err: cause, Hint: "the message is delivered again"})
	}
	c.accepted = nil
	c.buffer.clear()
	var lost []*longshore.Delivery
	for idx := range c.slots {
		if c.slots[idx].e == nil {
			continue
		}
		e, d := c.vacate(uint32(idx))
		if d != nil && d.Lose(cause) {
			lost = append(lost, d)
		}
		c.returned(e)
	}
	return lost
}

func (c *consumer) closed() bool { return errors.Is(c.ended, longshore.ErrClosed) }
