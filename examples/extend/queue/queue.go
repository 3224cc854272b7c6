package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Queue is a source and the broker behind it. It is safe for concurrent use.
type Queue struct {
	mu   sync.Mutex
	msgs []message
	wake chan struct{} // has an element when a Receive should look
}

type message struct {
	longshore.Message
	redelivered bool
}

// New makes an empty queue.
func New() *Queue { return &Queue{wake: make(chan struct{}, 1)} }

// Put adds messages at the end.
func (q *Queue) Put(msgs ...*longshore.Message) {
	for _, m := range msgs {
		q.put(false, message{Message: *m.Clone()})
	}
}

func (q *Queue) put(front bool, msgs ...message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if front {
		q.msgs = slices.Insert(q.msgs, 0, msgs...)
	} else {
		q.msgs = append(q.msgs, msgs...)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Capabilities promises nothing: no delays, no rejection, no order.
func (q *Queue) Capabilities() transport.Capabilities { return transport.Capabilities{} }

// Describe names the source in logs, events and metrics.
func (q *Queue) Describe() transport.Description {
	return transport.Description{Transport: "slice", Kind: "queue", Name: "queue"}
}

// Open subscribes. There is nothing to connect to.
func (q *Queue) Open(_ context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	base := o.Base
	if base == nil {
		base = context.Background()
	}
	return &consumer{q: q, base: base, open: map[uint64]*longshore.Delivery{}, ended: make(chan struct{}),
		about: &longshore.Subscription{Transport: "slice", Source: "queue"}}, nil
}

// consumer is the settler of its deliveries too: a token of an earlier one finds
// nothing here.
type consumer struct {
	q     *Queue
	base  context.Context //nolint:containedctx // of all deliveries
	about *longshore.Subscription

	mu    sync.Mutex
	seq   uint64
	open  map[uint64]*longshore.Delivery
	ended chan struct{} // closed by Cancel and Close
	end   error         // why
}

// Receive waits for a message. A context that ends loses nothing.
func (c *consumer) Receive(ctx context.Context, _ int) ([]*longshore.Delivery, error) {
	for {
		if d := c.take(); d != nil {
			c.q.put(true) // another one may wait
			return []*longshore.Delivery{d}, nil
		}
		select {
		case <-c.q.wake:
		case <-c.ended:
			c.mu.Lock()
			defer c.mu.Unlock()
			return nil, c.end
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *consumer) take() *longshore.Delivery {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.q.msgs) == 0 || c.end != nil {
		return nil
	}
	m := c.q.msgs[0]
	c.q.msgs = c.q.msgs[1:]
	c.seq++
	d := longshore.NewDelivery(c.base, c, c.seq)
	d.Message = m.Message
	d.Origin = longshore.Origin{Subscription: c.about, Topic: "queue", ReceivedAt: time.Now(), Redelivered: m.redelivered}
	c.open[c.seq] = d
	return d
}

// Cancel takes no more. What was received stays settleable.
func (c *consumer) Cancel(context.Context) error { c.finish(longshore.ErrCanceled); return nil }

// Release gives the buffer back: this consumer has none.
func (c *consumer) Release(context.Context) error { return nil }

// Flush waits for batched settlements: this consumer has none.
func (c *consumer) Flush(context.Context) error { return nil }

// Close puts everything back that was not settled.
func (c *consumer) Close(context.Context) error {
	c.finish(longshore.ErrClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, d := range c.open {
		delete(c.open, token)
		d.Lose(longshore.ErrLost)
		c.q.put(true, message{*d.Received(), true})
	}
	return nil
}

// Backlog is how many messages wait. It is optional, and what scaling goes by.
func (c *consumer) Backlog(context.Context) (int64, time.Time, error) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	return int64(len(c.q.msgs)), time.Now(), nil
}

// finish ends the consumer, for the reason that weighs more.
func (c *consumer) finish(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		close(c.ended)
	}
	if c.end == nil || errors.Is(why, longshore.ErrClosed) {
		c.end = why
	}
}

// settled takes a delivery off the list.
func (c *consumer) settled(token uint64) (*longshore.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.open[token]
	delete(c.open, token)
	if d == nil {
		return nil, longshore.ErrLost
	}
	return d, nil
}

// Ack forgets the message.
func (c *consumer) Ack(_ context.Context, token uint64) error {
	_, err := c.settled(token)
	return err
}

// Nack puts it back. This broker holds no delays: the container waits instead.
func (c *consumer) Nack(_ context.Context, token uint64, delay time.Duration, _ int) error {
	if delay > 0 {
		return unsupported("nack with a delay")
	}
	d, err := c.settled(token)
	if err == nil {
		c.q.put(true, message{*d.Received(), true})
	}
	return err
}

// Reject is for brokers with a dead-letter destination of their own.
func (c *consumer) Reject(context.Context, uint64, error) error { return unsupported("reject") }

// Extend is for brokers with leases.
func (c *consumer) Extend(context.Context, uint64, time.Duration) error { return unsupported("extend") }

func unsupported(verb string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: verb + " in a slice"}
}
