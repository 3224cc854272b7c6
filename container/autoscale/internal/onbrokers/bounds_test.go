package onbrokers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-E03: bounds that change at random under load are kept, 100 → 5 leaves running
// work alone, nothing is redelivered.
func TestBoundsChangeUnderLoad(t *testing.T) {
	for name, newLab := range labs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 4000
			l := newLab(t)
			var done, redelivered, running, canceled atomic.Int64
			c := start(t, l.source, func(ctx context.Context, d *longshore.Delivery) error {
				if d.Origin.Redelivered {
					redelivered.Add(1)
				}
				running.Add(1)
				<-time.After(100 * time.Millisecond)
				running.Add(-1)
				if ctx.Err() != nil {
					canceled.Add(1)
				}
				done.Add(1)
				return nil
			}, container.Config{Workers: container.Workers{Min: 100, Max: 100}})
			send(t, l.source, names("m", n)...)
			c.Resume()
			eventually(t, 30*time.Second, "100 handlers run", func() bool { return running.Load() >= 95 })
			if err := c.Scale(5, 5); err != nil {
				t.Fatal(err)
			}
			eventually(t, 10*time.Second, "5 handlers run", func() bool { return running.Load() <= 5 })
			for range 20 { // and never more
				<-time.After(20 * time.Millisecond)
				if k := running.Load(); k > 5 {
					t.Errorf("%d handlers run with 5 workers", k)
				}
			}
			l.check(t)
			rnd := rand.New(rand.NewPCG(5, 6))
			for range 100 {
				lo := 1 + rnd.IntN(40)
				hi := lo + rnd.IntN(40)
				if err := c.Scale(lo, hi); err != nil {
					t.Fatal(err)
				}
				if k := c.Stats().Target; k < lo || k > hi {
					t.Errorf("target %d outside %d to %d", k, lo, hi)
				}
				<-time.After(10 * time.Millisecond)
			}
			l.check(t)
			if err := c.Scale(100, 100); err != nil {
				t.Fatal(err)
			}
			eventually(t, 60*time.Second, "all is handled", func() bool { return done.Load() >= n })
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
			if done.Load() != n || redelivered.Load() != 0 || canceled.Load() != 0 {
				t.Errorf("%d of %d handled, %d redelivered, %d cancelled", done.Load(), n, redelivered.Load(), canceled.Load())
			}
		})
	}
}

// F-E04: batch, concurrency and prefetch fit together on RabbitMQ, or are refused.
func TestBatchConcurrencyAndPrefetch(t *testing.T) {
	t.Parallel()
	url := brokertest.AMQP(t)
	b := amqp.New(url, amqp.Config{})
	sizes := []int{1, 2, 16, 17, 50}
	var wg sync.WaitGroup
	places := make(chan struct{}, 12)
	for _, size := range sizes {
		for _, workers := range sizes {
			for _, prefetch := range sizes {
				places <- struct{}{}
				wg.Go(func() {
					defer func() { <-places }()
					if err := triple(t, b, size, workers, prefetch); err != nil {
						t.Errorf("size %d, workers %d, prefetch %d: %v", size, workers, prefetch, err)
					}
				})
			}
		}
	}
	wg.Wait()
}

func triple(t *testing.T, b *amqp.Broker, size, workers, prefetch int) error {
	const n = 101
	src := b.Queue(fmt.Sprintf("q-%d-%d-%d", size, workers, prefetch), amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}, Prefetch: prefetch})
	var handled atomic.Int64
	c, err := container.NewBatch(src, func(_ context.Context, ds []*longshore.Delivery) error {
		handled.Add(int64(len(ds)))
		return nil
	}, container.Config{Workers: container.Workers{Min: workers, Max: workers}, Batch: container.Batch{Size: size, Linger: 5 * time.Millisecond},
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Logger: zap.NewNop(), WaitForBroker: true})
	if err == nil {
		err = c.Start(t.Context())
	}
	fits := prefetch >= workers*size+max(size, 8)
	switch {
	case !fits && longshore.CodeOf(err) == longshore.CodeWindow && strings.Contains(err.Error(), "set Prefetch"):
		return nil // refused, with the reason
	case err != nil:
		return err
	}
	send(t, src, names("m", n)...)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last, since := int64(0), time.Now()
	for handled.Load() < n {
		<-tick.C
		if k := handled.Load(); k != last {
			last, since = k, time.Now()
		} else if time.Since(since) > 10*time.Second {
			return fmt.Errorf("stuck at %d of %d", k, n)
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		return err
	}
	if k := handled.Load(); k != n {
		return fmt.Errorf("%d handled of %d", k, n)
	}
	return nil
}
