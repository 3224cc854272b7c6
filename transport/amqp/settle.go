package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// settler is a consumer as its deliveries see it. The context of a verb matters only where
// a copy is published: what was handled is settled, also when its context is over. A
// delivery keeps its settler, so a late settlement never reaches a tag of a later channel.
type settler struct {
	src        *Queue               // for names
	cfg        *QueueConfig         // what a queue does with returns
	held       *deliveries          // which tag a delivery has
	copies     *copier              // for what must not go back as it is
	operations transport.Operations // times each settlement
}

// Ack accepts an ack. The settle writer sends it soon.
func (s *settler) Ack(_ context.Context, tag uint64) error {
	return s.held.settle(tag, longshore.Settlement{Verb: longshore.VerbAck}, tags.Ack)
}

// Nack gives the message back. With a delay, or where the broker would not show the
// attempt that is asked for, a copy takes its place: it is confirmed first, then the
// original is acked.
func (s *settler) Nack(ctx context.Context, tag uint64, delay time.Duration, attempt int) error {
	switch {
	case delay > codec.MaxDelay:
		return s.unsupported(fmt.Sprintf("nack with a delay of %s", delay), fmt.Sprintf("the longest is %s", codec.MaxDelay))
	case delay > 0 && s.cfg.refusesWhenFull():
		return s.unsupported("nack with a delay", "the queue refuses messages when it is full (x-overflow), and RabbitMQ would drop what comes back from its delay queue then")
	case delay > 0 && s.held.isStream():
		return s.unsupported("nack with a delay", "the copy would come to all who read the stream")
	}
	v := longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt}
	d, copyAttempt, err := s.held.giveBack(tag, v)
	if d == nil {
		return err
	}
	v.Attempt = copyAttempt
	began := s.operations.Begin()
	err = s.copies.copyBack(ctx, d, delay, v.Attempt)
	s.operations.End(longshore.OperationNack, began, longshore.CodeOf(err))
	return s.held.copied(tag, v, err)
}

// Reject sends the message to the queue's dead-letter exchange.
func (s *settler) Reject(_ context.Context, tag uint64, reason error) error {
	if s.cfg.AutoAck || !s.cfg.deadLettered() || s.held.isStream() {
		return s.unsupported("reject a delivery", "no dead-letter exchange of the queue is known, so RabbitMQ would drop the message; set x-dead-letter-exchange in Declare.Arguments, or DeadLettered")
	}
	return s.held.settle(tag, longshore.Settlement{Verb: longshore.VerbReject, Reason: reason}, tags.Reject)
}

// Extend is not supported.
func (s *settler) Extend(context.Context, uint64, time.Duration) error {
	return s.unsupported("extend a delivery", "RabbitMQ has no leases to extend; its consumer_timeout is a setting of the broker or the queue")
}

// unsupported is the error of a verb that this kind of queue does not have.
func (s *settler) unsupported(op, why string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: op + " of " + s.src.title(), Source: s.src.name(), Err: errors.New(why)}
}
