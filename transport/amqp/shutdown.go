package amqp

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// Cancel sends basic.cancel for every consumer on the channel and waits until
// all that the broker had sent before it confirmed is in the buffer. Where that cannot be
// (see dropAll) what still comes is held until Close, which tries again.
func (c *consumer) Cancel(ctx context.Context) error {
	c.mu.Lock()
	c.leaving = true
	end, done := c.end, c.canceled
	c.mu.Unlock()
	switch {
	case errors.Is(end, longshore.ErrClosed):
		return longshore.ErrClosed
	case end != nil || done:
		return nil
	}
	c.halt()
	err := c.do(ctx, func() error { return c.leave(ctx) })
	if err == nil || c.over() { // lost meanwhile: nothing more comes
		return nil
	}
	return c.b.set.brokerError("cancel "+c.src.title(), c.src.name(), err)
}

// leave cancels, or is deaf from now on. Then nothing may go back before the channel
// ends: it would come to us again.
func (c *consumer) leave(ctx context.Context) error {
	gone, err := c.dropAll(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.canceled = true
	if !gone {
		c.ignoring, c.stays = true, true
		c.tags.KeepReturned()
	}
	signal(c.ready)
	c.mu.Unlock()
	if !gone {
		c.tell.event(transport.Event{Kind: transport.EventNotice,
			Text: c.src.title() + " does not answer, or still sends what is due to its consumer, which is not cancelled therefore: what is unsettled goes back when it is closed"})
	}
	return nil
}

func (c *consumer) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil
}

// Release gives the buffer back by basic.nack, never before the broker confirmed
// the cancel: it would send the messages straight back here. Where that would cost
// them their place in the queue, they go back when the channel closes. What was
// delivered with AutoAck is published again, because the broker has forgotten it.
func (c *consumer) Release(ctx context.Context) error {
	c.mu.Lock()
	switch {
	case errors.Is(c.end, longshore.ErrClosed):
		c.mu.Unlock()
		return longshore.ErrClosed
	case c.end != nil:
		c.mu.Unlock()
		return nil
	}
	var again, renewed []*longshore.Delivery
	c.tags.Drain(func(tag uint64, d *longshore.Delivery) {
		switch {
		case c.cfg.AutoAck:
			again = append(again, d)
		case c.exhausted(d):
			c.tags.Copy(tag)
			renewed = append(renewed, d)
		case c.stays:
			c.tags.Keep(tag)
		default:
			c.tags.Accept(tag, longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}, tags.Nack)
			c.tags.Disown(tag)
		}
	})
	c.mu.Unlock()
	for i, d := range again {
		if err := c.copyBack(ctx, d, 0, d.Attempt); err != nil {
			return fmt.Errorf("%d of %d messages that were delivered with AutoAck could not be published again: %w", len(again)-i, len(again), err)
		}
	}
	failed := c.renew(ctx, renewed)
	if err := c.do(ctx, func() error { c.pass(false); return nil }); err != nil && !c.over() {
		failed = errors.Join(failed, c.b.set.brokerError("release "+c.src.title(), c.src.name(), err))
	}
	return failed
}

// renew puts copies in the place of buffered deliveries that the broker would give up. One
// that cannot be published goes back as it is.
func (c *consumer) renew(ctx context.Context, ds []*longshore.Delivery) error {
	var failed error
	for i, d := range ds {
		v := longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}
		err := failed
		if err == nil {
			err = c.copyBack(ctx, d, 0, d.Attempt)
		}
		if err == nil {
			err = c.copied(d.Token(), v, nil)
		}
		if failed == nil && err != nil && !errors.Is(err, longshore.ErrLost) {
			failed = fmt.Errorf("%d of %d messages that the broker may give up soon could not be published again: %w", len(ds)-i, len(ds), err)
		}
		if err != nil {
			c.goesBack(d.Token(), v)
		}
	}
	return failed
}

// goesBack returns a buffered delivery for which no copy could be made.
func (c *consumer) goesBack(tag uint64, v longshore.Settlement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, state := c.tags.Find(tag); c.end != nil || state != tags.Copying {
		return
	}
	if c.stays {
		c.tags.Keep(tag)
		return
	}
	c.tags.Accept(tag, v, tags.Nack)
	c.tags.Disown(tag)
}

// Flush writes all that was accepted and makes the broker answer on the same
// channel: only then it has read it.
func (c *consumer) Flush(ctx context.Context) error {
	err := c.do(ctx, func() error {
		c.pass(true)
		if err := c.barrier(); err != nil {
			return err
		}
		return c.rest()
	})
	c.mu.Lock()
	failed, end := c.failed, c.end
	c.failed = 0
	c.mu.Unlock()
	switch {
	case failed > 0:
		return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.src.title(), Source: c.src.name(),
			Err: fmt.Errorf("%d not confirmed", failed), Hint: "their messages may be delivered again"}
	case errors.Is(end, longshore.ErrClosed):
		return longshore.ErrClosed
	case end != nil || err == nil:
		return nil
	}
	return c.b.set.brokerError("flush settlements of "+c.src.title(), c.src.name(), err)
}

// Close settles what was accepted, gives everything else back and closes the
// channel. If ctx ends before the broker answers, it ends as if the connection
// had been cut.
func (c *consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	c.halt()
	err := c.do(ctx, func() error { return c.finish(ctx) })
	if errors.Is(err, longshore.ErrClosed) { // the sender has left before
		err = nil
	}
	c.abandonOpen(longshore.ErrClosed, longshore.ErrLost)
	c.mu.Lock()
	c.end = longshore.ErrClosed
	c.mu.Unlock()
	c.stopSender()
	c.b.unlisten(c)
	select {
	case <-c.sender:
		c.wg.Wait()
	case <-ctx.Done(): // the release below cuts the connection, or others still use it
		err = ctx.Err()
	}
	if err != nil {
		err = c.b.set.brokerError("close "+c.src.title(), c.src.name(), err)
	}
	return errors.Join(err, c.release(ctx), c.tell.wait(ctx))
}

// finish is the last job of the sender in an orderly end. Returning by nack
// matters on quorum queues from 4.3 on, where closing the channel counts as a
// delivery and nack does not.
//
// A single active consumer that was not cancelled before is not cancelled here: the
// broker would give the next one what is newer before it takes back what is here, and
// a classic queue might give it nothing before the next message is published. With
// the channel all goes at once.
//
// The same goes for one that cannot be cancelled: the order is kept by the channel's end.
func (c *consumer) finish(ctx context.Context) error {
	c.mu.Lock()
	asOne := c.cfg.SingleActive && !c.cfg.AutoAck && !c.canceled
	c.mu.Unlock()
	if !asOne {
		gone, err := c.dropAll(ctx)
		if err != nil {
			return err
		}
		asOne = !gone
	}
	c.mu.Lock()
	if c.end != nil {
		c.mu.Unlock()
		return nil
	}
	if c.ignoring || asOne { // what was given back goes with all else, in the order it came
		c.tags.KeepReturned()
	}
	c.writeStopped, c.stays = true, asOne || c.keepsByClosing()
	c.tags.Collect(&c.batch, true, false)
	highest, stays := c.tags.Highest(), c.stays
	c.mu.Unlock()
	c.write(&c.batch)
	if highest > 0 && !c.cfg.AutoAck && !stays {
		_ = c.ch.Nack(highest, true, true)
	}
	if c.src.cast != nil {
		_, _ = c.ch.QueueDelete(c.queues[0], false, false, false)
	}
	if err := c.barrier(); err != nil {
		return err
	}
	if err := c.rest(); err != nil {
		return err
	}
	return c.awaitQueue()
}

// release gives back the connections, once.
func (c *consumer) release(ctx context.Context) error {
	c.mu.Lock()
	released, retry := c.released, c.retry
	c.released, c.retry = true, nil
	c.mu.Unlock()
	if released {
		return nil
	}
	var err error
	if retry != nil {
		err = retry.Close(ctx)
	}
	return errors.Join(err, c.b.consume.Release(ctx, c.sess))
}
