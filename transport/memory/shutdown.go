package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// Cancel stops the queue from serving the consumer.
func (c *consumer) Cancel(ctx context.Context) error {
	if closed := c.intendEnd(); closed {
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

// intendEnd notes that an end from now on is wanted, and reports whether Close has been
// called already.
func (c *consumer) intendEnd() (closed bool) {
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
	c.returnBuffer()
	c.q.dispatch()
	return nil
}

// Flush carries out what was accepted.
func (c *consumer) Flush(ctx context.Context) error {
	if err := c.b.slow(ctx, OpFlush); err != nil {
		return err
	}
	if err := c.b.travel(ctx, &c.settling); err != nil {
		return err
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.carryOut()
	switch n := c.settling.takeFailed(); {
	case n > 0:
		return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.q.title(), Source: c.q.name,
			Err: fmt.Errorf("%d not carried out", n), Hint: "their messages will be redelivered"}
	case c.closed():
		return longshore.ErrClosed
	}
	return nil
}

// Close ends the consumer. If ctx ends before the broker answers, it ends as if
// the connection had been cut.
func (c *consumer) Close(ctx context.Context) error {
	if closed := c.intendEnd(); closed {
		return nil
	}
	err := c.b.slow(ctx, OpClose)
	if err == nil {
		err = c.b.travel(ctx, &c.settling)
	}
	c.shut(err == nil)
	if err != nil {
		err = &longshore.Error{Code: longshore.CodeTimeout, Op: "close the consumer of " + c.q.title(), Source: c.q.name, Err: err}
	}
	return errors.Join(err, c.notify.Wait(ctx))
}

// shut ends the consumer at the broker; answered reports whether settlements that
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
	c.notify.Lost(lost, cause)
	if !c.leaving {
		c.notify.Down(err)
	}
}

// lostError makes the reason for a loss wrap ErrLost.
type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{longshore.ErrLost, e.error} }

// surrender gives everything back to the queue and returns the deliveries that
// were open. Settlements that were accepted but not carried out have failed.
func (c *consumer) surrender(cause error) []*longshore.Delivery {
	for _, idx := range c.settling.take() {
		s := c.held.at(idx)
		c.settleFailed(s.d, s.verdict, cause)
	}
	var lost []*longshore.Delivery
	c.held.takeAll(func(e *entry, d *longshore.Delivery) {
		if d != nil && d.Lose(cause) {
			lost = append(lost, d)
		}
		c.q.takeBack(e)
	})
	return lost
}

func (c *consumer) closed() bool { return errors.Is(c.ended, longshore.ErrClosed) }
