package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// watch waits for the end of the channel or of one of its consumers, whoever else is busy.
func (c *consumer) watch(closes <-chan *amqp091.Error, cancels <-chan string) {
	every := time.NewTicker(patrolEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			consumers, now := c.footprint()
			if err := c.liveness.check(c.queues, consumers, now); err != nil {
				c.fail(err)
				return
			}
		case e := <-closes:
			if e != nil {
				c.fail(c.failure.ended(e))
			}
			return
		case reason := <-c.held.ends:
			c.fail(c.failure.because(reason))
			return
		case queue := <-cancels:
			c.held.stopWriting()
			c.fail(c.failure.canceled(queue))
			return // one end is enough; the others of this channel are cancelled too
		}
	}
}

// hearCancels passes on the queue of the first consumer that the broker cancels, and takes
// all others until the channel ends: the client's reader, which serves the whole
// connection, stands still until they are taken.
func (c *consumer) hearCancels(all <-chan string) <-chan string {
	first := make(chan string, 1)
	c.wg.Go(func() {
		for tag := range all {
			if queue, ours := c.window.queueOf(tag); ours {
				select {
				case first <- queue:
				default:
				}
			}
		}
	})
	return first
}

// footprint is how many consumers each queue should count for us, 0 if that is not known,
// and what has arrived.
func (c *consumer) footprint() (consumers int, now arrivals) {
	now = c.held.arrivals(0)
	if c.lead != nil || now.leaving || now.paused && !c.cfg.inPlace() || now.standby || now.over || c.cfg.Pull || c.cfg.Declare.Type == Classic {
		return 0, now
	}
	return c.liveness.counted(), now
}

// Cancel sends basic.cancel for every consumer on the channel and waits until everything
// that the broker had sent before it confirmed is in the buffer. Where that cannot be (see
// dropAll), what still comes is held until Close, which tries again.
func (c *consumer) Cancel(ctx context.Context) error {
	done, end := c.held.leave()
	switch {
	case errors.Is(end, longshore.ErrClosed):
		return longshore.ErrClosed
	case end != nil || done:
		return nil
	}
	c.halt()
	err := c.writer.do(ctx, func() error {
		gone, err := c.window.dropAll(ctx)
		if err != nil {
			return err
		}
		c.held.cancel(gone)
		if !gone {
			c.notices.Event(transport.Event{Kind: transport.EventNotice, Text: c.src.title() +
				" does not respond, or still sends messages to its consumer, which is therefore not cancelled: unsettled messages go back when it is closed"})
		}
		return nil
	})
	if err == nil || c.held.over() { // lost meanwhile: nothing more comes
		return nil
	}
	return c.src.b.set.brokerError("cancel "+c.src.title(), c.src.name(), err)
}

// Release gives the buffer back by basic.nack, never before the broker confirmed the
// cancel: it would send the messages straight back here. Where that would cost them their
// place in the queue, they go back when the channel closes. What was delivered with AutoAck
// is published again, because the broker has forgotten it.
func (c *consumer) Release(ctx context.Context) error {
	again, renewed, end := c.held.releaseBuffered()
	switch {
	case errors.Is(end, longshore.ErrClosed):
		return longshore.ErrClosed
	case end != nil:
		return nil
	}
	for i, d := range again {
		if err := c.copies.copyBack(ctx, d, 0, d.Attempt); err != nil {
			return fmt.Errorf("%d of %d messages that were delivered with AutoAck could not be published again: %w", len(again)-i, len(again), err)
		}
	}
	failed := c.renew(ctx, renewed)
	if err := c.writer.do(ctx, func() error { c.writer.pass(false); return nil }); err != nil && !c.held.over() {
		failed = errors.Join(failed, c.src.b.set.brokerError("release "+c.src.title(), c.src.name(), err))
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
			err = c.copies.copyBack(ctx, d, 0, d.Attempt)
		}
		if err == nil {
			err = c.held.copied(d.Token(), v, nil)
		}
		if failed == nil && err != nil && !errors.Is(err, longshore.ErrLost) {
			failed = fmt.Errorf("%d of %d messages that the broker may give up soon could not be published again: %w", len(ds)-i, len(ds), err)
		}
		if err != nil {
			c.held.goesBack(d.Token(), v)
		}
	}
	return failed
}

// Flush writes everything that was accepted and returns when the broker has read it.
func (c *consumer) Flush(ctx context.Context) error {
	err := c.writer.do(ctx, c.writer.flush)
	failed, end := c.held.takeFailed()
	switch {
	case failed > 0:
		return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.src.title(), Source: c.src.name(),
			Err: fmt.Errorf("%d not confirmed", failed), Hint: "their messages may be delivered again"}
	case errors.Is(end, longshore.ErrClosed):
		return longshore.ErrClosed
	case end != nil || err == nil:
		return nil
	}
	return c.src.b.set.brokerError("flush settlements of "+c.src.title(), c.src.name(), err)
}

// Close settles what was accepted, gives everything else back and closes the channel. If
// ctx ends before the broker answers, it ends as if the connection had been cut.
func (c *consumer) Close(ctx context.Context) error {
	_, _ = c.held.leave()
	c.halt()
	err := c.writer.do(ctx, func() error { return c.finish(ctx) })
	if errors.Is(err, longshore.ErrClosed) { // the writer has left before
		err = nil
	}
	c.end(longshore.ErrClosed, longshore.ErrLost)
	c.held.close()
	c.writer.stop()
	c.src.b.unlisten(c.notices)
	select {
	case <-c.writer.left:
		c.wg.Wait()
	case <-ctx.Done(): // giving the connection back cuts it, or others still use it
		err = ctx.Err()
	}
	if err != nil {
		err = c.src.b.set.brokerError("close "+c.src.title(), c.src.name(), err)
	}
	return errors.Join(err, c.giveBackConnections(ctx), c.notices.Wait(ctx))
}

// finish is the last job of the settle writer in an orderly end.
//
// A single active consumer that was not cancelled before is not cancelled here: the broker
// would give the next consumer what is newer before it takes back what is here, and a
// classic queue might give it nothing before the next message is published. With the
// channel everything goes at once. The same goes for one that cannot be cancelled: the
// channel's end keeps the order.
func (c *consumer) finish(ctx context.Context) error {
	together := c.cfg.SingleActive && !c.cfg.AutoAck && !c.held.canceled()
	if !together {
		gone, err := c.window.dropAll(ctx)
		if err != nil {
			return err
		}
		together = !gone
	}
	last, ok := c.writer.finish(together, c.cfg.AutoAck)
	if !ok {
		return nil
	}
	if c.src.cast != nil {
		_, _ = c.ch.QueueDelete(c.queues[0], false, false, false)
	}
	if err := c.writer.barrier(); err != nil {
		return err
	}
	if err := c.writer.settled(); err != nil {
		return err
	}
	if held := last.keeps && c.held.arrivals(0).outstanding > 0; !c.writer.backlog.heavy || held || c.window.others < 0 {
		return nil
	}
	return awaitQueue(c.ch, c.queues[0], c.window.others, c.held.gone)
}

// fail ends the consumer from the broker's side: deliveries are lost, then the channel
// closes, and only then the container is notified and may open again.
func (c *consumer) fail(err error) {
	if !c.failing.CompareAndSwap(false, true) {
		<-c.reported
		return
	}
	defer close(c.reported)
	if c.held.over() {
		return
	}
	lost := c.end(err, &lostError{err})
	c.writer.stop()
	select {
	case <-c.writer.left:
	case <-time.After(5 * time.Second): // it hangs in a call; the connection ends it
	}
	c.notices.Lost(lost, &lostError{err})
	if !c.held.arrivals(0).leaving {
		c.notices.Down(err)
	}
}

// end makes err what Receive returns and gives up all deliveries: open ones are marked lost
// and returned, accepted settlements have failed. It does nothing the second time.
func (c *consumer) end(err, cause error) (lost []*longshore.Delivery) {
	ended, first := c.held.end(err)
	if !first {
		return nil
	}
	c.halt()
	c.failSettlements(ended.Unsent, "was not sent", cause)
	c.failSettlements(ended.Unconfirmed, "was sent, but the broker did not confirm it", cause)
	for _, d := range ended.Lost {
		if d.Lose(cause) {
			lost = append(lost, d)
		}
	}
	return lost
}

// failSettlements reports accepted settlements whose outcome is not known.
func (c *consumer) failSettlements(ps []tags.Pending, what string, cause error) {
	for _, p := range ps {
		c.notices.SettleFailed(p.Delivery, p.Settlement, &longshore.Error{Code: longshore.CodeSettle, Source: c.src.name(),
			Op:  fmt.Sprintf("%s a delivery of %s", p.Settlement.Verb, c.src.title()),
			Err: fmt.Errorf("it %s: %w", what, cause), Hint: "the message may be delivered again"})
	}
}

// giveBackConnections gives back the connections, once.
func (c *consumer) giveBackConnections(ctx context.Context) (err error) {
	c.release.Do(func() {
		if c.src.lock != "" {
			c.src.b.unlock(ctx, c.sess, c.src.lock)
		}
		err = errors.Join(c.copies.close(ctx), c.src.b.consume.Release(ctx, c.sess))
	})
	return err
}
