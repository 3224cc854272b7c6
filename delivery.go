package longshore

import (
	"context"
	"sync/atomic"
	"time"
)

// Delivery is one message handed to this process, with the duty to settle it
// once: [Delivery.Ack], [Delivery.Nack] or [Delivery.Reject]. A container
// settles it by the handler's result unless it is configured to leave that to the
// handler.
//
// A Delivery is made by a transport, never copied and never reused: a pointer
// kept too long answers [ErrSettled] or [ErrLost] and can settle nothing else.
// All methods may be called from any goroutine.
type Delivery struct {
	// Message is what was received, or what a middleware put in its place.
	Message
	// Origin says where it came from.
	Origin Origin
	// Attempt starts at 1 and counts the deliveries of this message that reached a
	// handler and failed, as far as the broker lets us tell, plus this one.
	Attempt int

	ctx      lazyContext
	settler  Settler
	token    uint64
	state    atomic.Uint32
	holdAck  atomic.Bool
	root     *Delivery                // the delivery the transport made; nil on that one itself
	current  atomic.Pointer[Delivery] // on the root: the newest attempt
	owner    Owner
	received *Message // set by the first Replace
	sized    int64    // the bytes of a larger body that the owner knows of
	native   any
	started  time.Time
}

// Origin says where a delivery came from. What a broker does not have is zero.
type Origin struct {
	// Subscription holds what is the same for all deliveries of a consumer; nil
	// only in a Delivery that no transport made.
	Subscription *Subscription
	// Topic is the queue or topic the message was read from.
	Topic string
	// Partition is the Kafka partition.
	Partition int32
	// Position is the offset, delivery tag or sequence number within its scope.
	Position uint64
	// Redelivered: the broker has handed it out before.
	Redelivered bool
	// LastReturn: given back once more, the broker gives the message up, to its own
	// dead-letter destination or drops it. A container with a place for it moves it there.
	LastReturn bool
	// ReceivedAt is when this process got it.
	ReceivedAt time.Time
	// Exchange and RoutingKey are RabbitMQ's.
	Exchange, RoutingKey string
	// GroupID is the message group of SQS.
	GroupID string
}

// Subscription is what all deliveries of one consumer have in common.
type Subscription struct {
	Transport string // "rabbitmq", "kafka", "aws_sqs", "memory"
	Source    string // name of the queue, or of topic and group
	Tag       string // consumer tag
	Group     string // consumer group

	// Identify returns the broker's own stable id of a delivery, "" if there is
	// none. See [Identity].
	Identify func(*Delivery) string
}

// Transport returns the name of the transport, "" for a hand-made delivery.
func (o *Origin) Transport() string {
	if o.Subscription == nil {
		return ""
	}
	return o.Subscription.Transport
}

// Source returns the name of the source, "" for a hand-made delivery.
func (o *Origin) Source() string {
	if o.Subscription == nil {
		return ""
	}
	return o.Subscription.Source
}

// Context returns the handler's context. It ends when the delivery is lost
// (cause [ErrLost]), when the drain deadline passes (cause [ErrStopping]) and
// when the handler has returned or, with manual settling, the delivery is settled.
func (d *Delivery) Context() context.Context { return &d.ctx }

// Ack says the message is done. nil means accepted: the transport may batch it
// and reports a later failure to the container. Within a middleware that commits
// something (see [Delivery.HoldAck]) it is carried out when the chain has returned nil.
//
// Errors: [ErrSettled], [ErrLost], [ErrClosed].
func (d *Delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, Settlement{Verb: VerbAck})
}

// Nack gives the message back, to be delivered again not before delay; 0 is at
// once. It counts as an attempt where the broker lets us count: in a container it is
// what [Retry] is as a result, so that the last one ends at the dead-letter destination.
// [Release], returned, gives back uncounted.
//
// Errors: [ErrSettled], [ErrLost], [ErrClosed], or [CodeUnsupported] if the
// broker cannot hold it that long; then the delivery stays open.
func (d *Delivery) Nack(ctx context.Context, delay time.Duration) error {
	return d.settle(ctx, Settlement{Verb: VerbNack, Delay: max(delay, 0), Attempt: d.Attempt + 1})
}

// Reject says the message must never come again: it goes to the dead-letter
// place. In a container that is the container's, otherwise the broker's own.
//
// Errors: [ErrSettled], [ErrLost], [ErrClosed], or [CodeUnsupported] where there
// is no such place; then the delivery stays open.
func (d *Delivery) Reject(ctx context.Context, reason error) error {
	return d.settle(ctx, Settlement{Verb: VerbReject, Reason: reason})
}

// Extend keeps the delivery for lease from now. Transports with leases keep
// them by themselves; it is needed only to hold one longer than they would.
//
// Errors: [ErrSettled], [ErrLost], [ErrClosed], [CodeUnsupported].
func (d *Delivery) Extend(ctx context.Context, lease time.Duration) error {
	return d.settle(ctx, Settlement{Verb: VerbExtend, Delay: lease})
}

// Owned reports whether the delivery is still this process's to settle. Ask before
// an effect that cannot be undone; the answer can be outdated a moment later.
func (d *Delivery) Owned() bool { return d.state.Load() == 0 }

// Wait runs fn, which only waits (for a permit, a lock), so that its time
// counts neither as busy nor as latency. It returns what fn returns. fn gets ctx.
func (d *Delivery) Wait(ctx context.Context, fn func(ctx context.Context) error) error {
	if d.owner != nil {
		return d.owner.Wait(ctx, d, fn)
	}
	return fn(ctx)
}

// HoldAck is for middlewares that commit something after the handler, called before
// it: an Ack by the handler's own hand then waits for the end of the chain in a
// container, and is dropped if the chain fails. Carried out at once, the message would
// be gone when the commit fails. It holds for this attempt.
func (d *Delivery) HoldAck() { d.holdAck.Store(true) }

// AckHeld reports whether an Ack waits for the end of the chain. For containers.
func (d *Delivery) AckHeld() bool { return d.holdAck.Load() }

// Reserve makes room for a body of n bytes that a middleware is about to put in the place
// of what was received, such as one that it unpacks: a small message may become any size.
// In a container it waits while the bodies that other deliveries have put in their place
// take more than the container's MaxBytes with this one; one alone is let through. What is
// reserved ends with the delivery's attempt, and a later call replaces it. The time counts
// as that of [Delivery.Wait].
//
// Errors: [ErrNoRoom] for a delivery of a batch while others of it have reserved room
// already, since two batches would wait for each other: release it. Else the cause of ctx.
func (d *Delivery) Reserve(ctx context.Context, n int64) error {
	z, ok := d.owner.(Sizer)
	if !ok {
		return nil
	}
	err := d.Wait(ctx, func(ctx context.Context) error { return z.Resize(ctx, d, n, true) })
	if err == nil {
		d.sized = n
	}
	return err
}

// Replace lets the rest of the chain see m in place of what was received. A
// retry and a dead letter keep what was received. It must be called by the
// middleware that currently holds the delivery. A body that is larger than what was
// received counts in the container's MaxBytes as long as this attempt lasts; for a large
// one call [Delivery.Reserve] before.
func (d *Delivery) Replace(m Message) {
	if d.received == nil {
		orig := d.Message
		d.received = &orig
	}
	d.Message = m
	n := int64(len(m.Body))
	if n <= int64(len(d.received.Body)) { // mostly a part of it, or the same
		n = 0
	}
	if z, ok := d.owner.(Sizer); ok && n != d.sized {
		d.sized = n
		_ = z.Resize(&d.ctx, d, n, false) // it never fails
	}
}

// Received returns the message as it came, whatever Replace did.
func (d *Delivery) Received() *Message {
	if d.received != nil {
		return d.received
	}
	return &d.Message
}

// Native returns the raw record, delivery or message of the transport's client;
// each transport documents its type. nil if there is none.
func (d *Delivery) Native() any { return d.native }

// Started returns when the container called the handler for this attempt: one
// clock reading that middlewares can share. Zero outside a container.
func (d *Delivery) Started() time.Time { return d.started }

func (d *Delivery) settle(ctx context.Context, s Settlement) error {
	if d.owner != nil {
		return d.owner.Settle(ctx, d, s)
	}
	return d.Apply(ctx, s)
}
