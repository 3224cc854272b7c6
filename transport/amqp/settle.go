package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// settler is the consumer as its deliveries see it. The context of a verb is
// used only where something is published: what was done is settled, also when
// its context is over.
type settler struct{ c *consumer }

func (s *settler) Ack(_ context.Context, tag uint64) error {
	return s.c.settle(tag, longshore.Settlement{Verb: longshore.VerbAck}, tags.Ack)
}

// Nack gives the message back. With a delay, or where the broker would not show
// the attempt that is asked for, a copy takes its place: confirmed first, then
// the original is acked.
func (s *settler) Nack(ctx context.Context, tag uint64, delay time.Duration, attempt int) error {
	c := s.c
	if delay > codec.MaxDelay {
		return c.unsupported(fmt.Sprintf("nack with a delay of %s", delay), fmt.Sprintf("the longest is %s", codec.MaxDelay))
	}
	if delay > 0 && c.cfg.refusesWhenFull() {
		return c.unsupported("nack with a delay", "the queue refuses messages when it is full (x-overflow), and RabbitMQ would drop what comes back from its delay queue then")
	}
	if delay > 0 && c.src.streams() {
		return c.unsupported("nack with a delay", "the copy would come to all who read the stream")
	}
	v := longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt}
	c.mu.Lock()
	d, err := c.held(tag)
	if err != nil {
		c.mu.Unlock()
		return err
	}
	if v.Attempt <= 0 {
		v.Attempt = d.Attempt + 1
	}
	switch how, ok := c.returnBy(d, v.Attempt); {
	case delay > 0: // a copy
	case c.src.streams():
		c.reread(tag)
		c.mu.Unlock()
		return nil
	case c.exhausted(d): // a copy
	case c.stays && c.leaving:
		c.tags.Keep(tag)
		c.mu.Unlock()
		return nil
	case ok || c.ordered && c.leaving: // with an order the place counts more than the attempt
		c.accept(tag, d, v, how)
		c.mu.Unlock()
		return nil
	}
	c.tags.Copy(tag)
	c.mu.Unlock()
	began := c.operations.Begin()
	err = c.copyBack(ctx, d, delay, v.Attempt)
	c.operations.End(longshore.OperationNack, began, longshore.CodeOf(err))
	return c.copied(tag, v, err)
}

// copied settles the original after its copy was confirmed, or opens it again.
func (c *consumer) copied(tag uint64, v longshore.Settlement, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return longshore.ErrLost
	}
	d, state := c.tags.Find(tag)
	if state == tags.Absent {
		return longshore.ErrLost
	}
	if err != nil {
		c.tags.Reopen(tag)
		return err
	}
	c.accept(tag, d, v, tags.Ack)
	return nil
}

// returnBy chooses the method that gives a delivery back so that it comes again
// with this attempt, or says that there is none: what the broker gives back keeps its
// headers, and with them the attempt it came with.
func (c *consumer) returnBy(d *longshore.Delivery, attempt int) (how tags.How, ok bool) {
	if c.cfg.AutoAck {
		return 0, false
	}
	return tags.Nack, attempt <= codec.Attempt(nativeOf(d), d.Origin.Topic) || c.cfg.refusesWhenFull()
}

func (s *settler) Reject(_ context.Context, tag uint64, reason error) error {
	if s.c.cfg.AutoAck || !s.c.cfg.deadLettered() || s.c.src.streams() {
		return s.c.unsupported("reject a delivery", "no dead-letter exchange of the queue is known, so RabbitMQ would drop the message; set x-dead-letter-exchange in Declare.Arguments, or DeadLettered")
	}
	return s.c.settle(tag, longshore.Settlement{Verb: longshore.VerbReject, Reason: reason}, tags.Reject)
}

func (s *settler) Extend(context.Context, uint64, time.Duration) error {
	return s.c.unsupported("extend a delivery", "RabbitMQ has no leases to extend; its consumer_timeout is a setting of the broker or the queue")
}

func (c *consumer) unsupported(op, why string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: op + " of " + c.src.title(), Source: c.src.name(), Err: errors.New(why)}
}

// held returns the delivery of a tag that can be settled.
func (c *consumer) held(tag uint64) (*longshore.Delivery, error) {
	if c.end != nil {
		return nil, longshore.ErrLost
	}
	d, state := c.tags.Find(tag)
	if state != tags.Open {
		return nil, longshore.ErrSettled
	}
	return d, nil
}

func (c *consumer) settle(tag uint64, v longshore.Settlement, how tags.How) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.held(tag)
	if err != nil {
		return err
	}
	c.accept(tag, d, v, how)
	return nil
}

// accept notes a settlement and sees to it that the sender comes by. mu is held.
func (c *consumer) accept(tag uint64, d *longshore.Delivery, v longshore.Settlement, how tags.How) {
	if c.cfg.AutoAck { // the broker forgot it when it sent it
		c.tags.Forget(tag)
		return
	}
	c.readTo(d)
	first, window := c.tags.Unsent() == 0, c.window
	if window == 0 { // unlimited
		window = maxUnconfirmed
	}
	c.tags.Accept(tag, v, how)
	if how != tags.Ack || 2*c.tags.Unsent() >= window {
		c.urgent = true
		signal(c.wake)
	} else if first {
		signal(c.wake)
	}
}
