package container_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// chain is what both sides of the comparison run: recover, timing, a guard.
func chain() []longshore.Middleware {
	var total atomic.Int64
	return []longshore.Middleware{
		longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
			return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
				}()
				return next.Handle(ctx, d)
			})
		}),
		longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
			return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				start := time.Now()
				err := next.Handle(ctx, d)
				total.Add(int64(time.Since(start)))
				return err
			})
		}),
		longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
			return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				if d.ID == "never" {
					return longshore.Discard(nil)
				}
				return next.Handle(ctx, d)
			})
		}),
	}
}

func fill(b *testing.B, br *memory.Broker, n int) {
	pub, err := br.Publisher(memory.PublisherConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer pub.Close(context.Background())
	body := make([]byte, 256)
	msgs := make([]*longshore.Message, 0, 1000)
	for i := 0; i < n; i += len(msgs) {
		msgs = msgs[:0]
		for j := range min(1000, n-i) {
			msgs = append(msgs, &longshore.Message{ID: "m", Key: fmt.Appendf(nil, "key-%d", (i+j)*7919%10000), Body: body})
		}
		if err := pub.Publish(context.Background(), "q", msgs...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlainLoop(b *testing.B) {
	br := memory.New(memory.Config{})
	fill(b, br, b.N)
	c, err := br.Queue("q", memory.QueueConfig{Prefetch: 20}).Open(context.Background(), transport.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	h := longshore.Chain(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), chain()...)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		ds, err := c.Receive(ctx, 20)
		if err != nil {
			b.Fatal(err)
		}
		for _, d := range ds {
			if h.Handle(d.Context(), d) == nil {
				_ = d.Ack(ctx)
			}
		}
		n += len(ds)
	}
}

func BenchmarkContainer(b *testing.B) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		for _, workers := range []int{1, 8, 100} {
			b.Run(fmt.Sprintf("order=%v/workers=%d", order, workers), func(b *testing.B) { benchContainer(b, order, workers) })
		}
	}
}

func benchContainer(b *testing.B, order container.Order, workers int) {
	br := memory.New(memory.Config{})
	fill(b, br, b.N)
	var n atomic.Int64
	all := make(chan struct{})
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		if n.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	c, err := container.New(br.Queue("q", memory.QueueConfig{}), h, quiet(container.Config{Order: order,
		Workers: container.Workers{Min: workers, Max: workers}, Middleware: chain()}))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-all
	b.StopTimer()
	if err := c.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStats reads a container that holds 65,536 deliveries, one handler running: what
// it costs is paid while nothing can be started.
func BenchmarkStats(b *testing.B) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		b.Run(fmt.Sprintf("order=%v", order), func(b *testing.B) { benchStats(b, order, 1<<16) })
	}
}

func benchStats(b *testing.B, order container.Order, held int) {
	br := memory.New(memory.Config{})
	fill(b, br, held)
	end := make(chan struct{})
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { <-end; return nil })
	c, err := container.New(br.Queue("q", memory.QueueConfig{}), h, quiet(container.Config{Order: order,
		Workers: container.Workers{Min: 1, Max: 1}, Lookahead: held - 1, MaxBytes: 1 << 30, DrainTimeout: -1}))
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	for c.Stats().Received < int64(held) {
		runtime.Gosched()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		_ = c.Stats()
	}
	b.StopTimer()
	close(end)
	if err := c.Stop(context.Background()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		var drain *container.DrainError
		if !errors.As(err, &drain) {
			b.Fatal(err)
		}
	}
}
