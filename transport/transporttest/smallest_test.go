package transporttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// sliceQueue is a queue in a slice, as small as a transport can be.
type sliceQueue struct {
	mu   sync.Mutex
	msgs []sliceMessage
	wake chan struct{}
}

type sliceMessage struct {
	longshore.Message
	redelivered bool
}

func newSliceQueue() *sliceQueue { return &sliceQueue{wake: make(chan struct{}, 1)} }

// put adds messages, at the front if they are to come next.
func (s *sliceQueue) put(front bool, msgs ...sliceMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if front {
		s.msgs = append(append([]sliceMessage(nil), msgs...), s.msgs...)
	} else {
		s.msgs = append(s.msgs, msgs...)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sliceQueue) Capabilities() transport.Capabilities { return transport.Capabilities{} }

func (s *sliceQueue) Open(_ context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	return &sliceConsumer{s: s, base: o.Base, open: map[uint64]*longshore.Delivery{}, canceled: make(chan struct{})}, nil
}

type sliceConsumer struct {
	s    *sliceQueue
	base context.Context

	mu       sync.Mutex
	seq      uint64
	open     map[uint64]*longshore.Delivery
	canceled chan struct{} // closed by Cancel and Close
	end      error         // why canceled is closed
}

func (c *sliceConsumer) take() *longshore.Delivery {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if len(c.s.msgs) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return nil
	}
	base := c.base
	if base == nil {
		base = context.Background()
	}
	c.seq++
	d := longshore.NewDelivery(base, c, c.seq) // c settles it, by token
	m := c.s.msgs[0]
	c.s.msgs = c.s.msgs[1:]
	d.Message = m.Message
	d.Origin = longshore.Origin{Subscription: &longshore.Subscription{Transport: "slice", Source: "queue"}, Topic: "queue", ReceivedAt: time.Now(), Redelivered: m.redelivered}
	c.open[c.seq] = d
	return d
}

func (c *sliceConsumer) Receive(ctx context.Context, _ int) ([]*longshore.Delivery, error) {
	for {
		if d := c.take(); d != nil {
			c.s.put(true) // another one may wait
			return []*longshore.Delivery{d}, nil
		}
		select {
		case <-c.s.wake:
		case <-c.canceled:
			c.mu.Lock()
			defer c.mu.Unlock()
			return nil, c.end
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finish ends the consumer, for the reason that weighs more.
func (c *sliceConsumer) finish(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		close(c.canceled)
	}
	if c.end == nil || errors.Is(why, longshore.ErrClosed) {
		c.end = why
	}
}

func (c *sliceConsumer) Cancel(context.Context) error  { c.finish(longshore.ErrCanceled); return nil }
func (c *sliceConsumer) Release(context.Context) error { return nil } // nothing is buffered
func (c *sliceConsumer) Flush(context.Context) error   { return nil } // nothing is batched

func (c *sliceConsumer) Close(context.Context) error {
	c.finish(longshore.ErrClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, d := range c.open {
		delete(c.open, token)
		d.Lose(longshore.ErrLost)
		c.s.put(true, sliceMessage{*d.Received(), true})
	}
	return nil
}

// settled takes a delivery off the list.
func (c *sliceConsumer) settled(token uint64) (*longshore.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.open[token]
	delete(c.open, token)
	if d == nil {
		return nil, longshore.ErrLost
	}
	return d, nil
}

func (c *sliceConsumer) Ack(_ context.Context, token uint64) error {
	_, err := c.settled(token)
	return err
}

func (c *sliceConsumer) Nack(_ context.Context, token uint64, delay time.Duration, _ int) error {
	if delay > 0 {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "nack with a delay"}
	}
	d, err := c.settled(token)
	if err == nil {
		c.s.put(true, sliceMessage{*d.Received(), true})
	}
	return err
}

func (c *sliceConsumer) Reject(context.Context, uint64, error) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "reject"}
}

func (c *sliceConsumer) Extend(context.Context, uint64, time.Duration) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "extend"}
}

func sliceHarness() Harness {
	return Harness{
		Quiet:  20 * time.Millisecond,
		Source: func(testing.TB) transport.Source { return newSliceQueue() },
		Publish: func(t testing.TB, src transport.Source, msgs ...*longshore.Message) {
			q, ok := src.(*sliceQueue)
			if !ok {
				t.Fatalf("a source of kind %T", src)
			}
			for _, m := range msgs {
				q.put(false, sliceMessage{Message: *m.Clone()})
			}
		},
	}
}

// The smallest transport that keeps the contract; examples/extend has one like it for
// those who write their own.
func TestSmallestTransport(t *testing.T) { Run(t, sliceHarness()) }
