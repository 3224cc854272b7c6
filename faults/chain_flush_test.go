package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// strictSource hands out consumers that forget at Close what was not flushed, as the
// contract lets them: only Flush promises that the broker knows.
type strictSource struct {
	transport.Source
	settled, flushed atomic.Int64
	lost             atomic.Int64
}

func (s *strictSource) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return &strictConsumer{c, s}, err
}

type strictConsumer struct {
	transport.Consumer
	src *strictSource
}

func (c *strictConsumer) Flush(ctx context.Context) error {
	c.src.flushed.Store(c.src.settled.Load())
	return c.Consumer.Flush(ctx)
}

func (c *strictConsumer) Close(ctx context.Context) error {
	c.src.lost.Add(c.src.settled.Load() - c.src.flushed.Load())
	return c.Consumer.Close(ctx)
}

// F-A03: what was accepted is flushed before the consumer is closed; a transport
// need not do it then.
func TestStopFlushesBeforeItCloses(t *testing.T) {
	t.Parallel()
	broker := memory.New(memory.Config{})
	inner := broker.Queue("orders", memory.QueueConfig{})
	src, l := &strictSource{Source: inner}, oracle.New()
	c := consumeFrom(t, src, container.Config{}, func(_ context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), string(d.Key))
		src.settled.Add(1)
		end(true)
		return nil
	})
	p, dest, err := publisherOf(t.Context(), inner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	for _, id := range []string{"1", "2", "3"} {
		if err := p.Publish(t.Context(), dest, &longshore.Message{Body: []byte(id)}); err != nil {
			t.Fatal(err)
		}
		l.Published(id, "")
	}
	eventually(t, time.Minute, "all are handled", func() bool { return l.Done() == 3 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if n := src.lost.Load(); n != 0 {
		t.Errorf("%d settlements were not flushed before the close", n)
	}
	check(t, l, oracle.Allow{})
}
