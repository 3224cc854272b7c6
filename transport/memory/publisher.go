package memory

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

type publisher struct {
	b      *Broker         // where it publishes
	cfg    PublisherConfig // as given
	closed atomic.Bool     // Publish fails from then on
}

// Publisher returns a publisher to the broker's queues and topics; a
// destination is the name of one. The error is always nil; it is there so that
// all brokers are used alike.
func (b *Broker) Publisher(cfg PublisherConfig) (transport.Publisher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	return &publisher{b: b, cfg: cfg}, nil
}

// Publish stores the messages. Body and Key are shared with those who receive
// them, the rest is copied.
func (p *publisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if p.closed.Load() {
		return longshore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.b.slow(ctx, OpPublish); err != nil {
		return err
	}
	failed := p.b.check(dest, msgs)
	if len(failed) < len(msgs) {
		if err := p.b.store(dest, msgs, failed, p.cfg.MustExist); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return &transport.PartialError{Failed: failed, Total: len(msgs)}
	}
	return nil
}

// Close ends the publisher.
func (p *publisher) Close(context.Context) error {
	if p.closed.Swap(true) {
		return nil
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.opened--
	return nil
}

// check returns mistakes in single messages, by index.
func (b *Broker) check(dest string, msgs []*longshore.Message) map[int]error {
	var failed map[int]error
	for i, m := range msgs {
		err := b.refusal(dest, m)
		if err == nil {
			continue
		}
		if failed == nil {
			failed = map[int]error{}
		}
		failed[i] = err
	}
	return failed
}

func (b *Broker) refusal(dest string, m *longshore.Message) error {
	if m == nil {
		return &longshore.Error{Code: longshore.CodeRefused, Op: fmt.Sprintf("publish to memory %q", dest), Source: dest, Err: errors.New("the message is nil")}
	}
	if err := b.faults.publishing(dest); err != nil {
		return err
	}
	if len(m.Headers) > 0 {
		if err := m.Headers.Check(); err != nil {
			return err
		}
	}
	if limit := b.cfg.MaxMessageBytes; limit > 0 && size(m) > limit {
		return &longshore.Error{Code: longshore.CodeTooLarge, Op: fmt.Sprintf("publish to memory %q", dest), Source: dest,
			Err: fmt.Errorf("%d bytes, the broker takes %d", size(m), limit)}
	}
	return nil
}

func (b *Broker) store(dest string, msgs []*longshore.Message, failed map[int]error, mustExist bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[dest]
	if t == nil && b.queues[dest] == nil && (mustExist || dest == "") {
		return &longshore.Error{Code: longshore.CodeUnroutable, Op: fmt.Sprintf("publish to memory %q", dest), Source: dest,
			Err: errors.New("no such queue or topic")}
	}
	for i, m := range msgs {
		switch {
		case failed[i] != nil:
		case t != nil:
			t.publish(m)
		default:
			b.queue(dest).publish(m)
		}
	}
	if t == nil {
		b.queue(dest).dispatch()
	}
	return nil
}

func size(m *longshore.Message) int64 {
	n := len(m.Body) + len(m.Key)
	for _, h := range m.Headers {
		n += len(h.Name)
		switch v := h.Value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		default:
			n += 8
		}
	}
	return int64(n)
}
