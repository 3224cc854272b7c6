package faults

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// shaky records what it handles and fails the first two calls of every 20th
// message: there are always some that wait for their retry.
func shaky(l *oracle.Ledger, work time.Duration) longshore.HandlerFunc {
	var mu sync.Mutex
	calls := map[string]int{}
	return func(ctx context.Context, d *longshore.Delivery) error {
		id := string(d.Body)
		end := l.Begin(id, string(d.Key))
		select {
		case <-time.After(work):
		case <-ctx.Done():
			end(false)
			return ctx.Err()
		}
		mu.Lock()
		calls[id]++
		n := calls[id]
		mu.Unlock()
		if id[len(id)-1] == '7' && len(id) > 1 && id[len(id)-2]%2 == 0 && n <= 2 {
			end(false)
			return longshore.Retry(errors.New("not yet"), 200*time.Millisecond)
		}
		end(d.Owned())
		return nil
	}
}

// The link is cut again and again while many are at work and some wait for their
// retry: what comes back is still in the order of its key.
func TestCutsKeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		const total, keys = 2500, 23
		q.publish(l, 0, total, keys)
		proxy, purl := proxied(t, url)
		c := consumeFrom(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
			container.Config{Workers: container.Workers{Min: 16, Max: 16}, Order: container.ByKey, Reopen: quickly}, shaky(l, 5*time.Millisecond))
		for range 8 {
			before := l.Done()
			eventually(t, 20*time.Second, "some were handled", func() bool { return l.Done() > before+120 || l.Done() == total })
			proxy.CutAll()
		}
		eventually(t, 60*time.Second, "all are done", func() bool { return l.Done() == total })
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		// Each cut repeats what is in hand (32 for 16 workers, and what waits for its retry), and
		// acks that the broker had not confirmed.
		check(t, l, oracle.Allow{Twice: 8 * 2 * 48, Ordered: true})
	})
}

// F-N15: a container is stopped and started in turns under load, with retries waiting at
// every stop: what the drain gives back keeps its place in the queue.
func TestRestartsKeepTheOrderOfAKey(t *testing.T) { // alone: a busy disk makes quorum queues lag
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		const total, keys, rounds = 2400, 13, 8
		h := shaky(l, 2*time.Millisecond)
		// A stop takes no attempt away: a message that fails for good would wait for five
		// minutes, and its key with it.
		cfg := container.Config{Workers: container.Workers{Min: 8, Max: 8}, Order: container.ByKey, DrainTimeout: 100 * time.Millisecond,
			Redelivery: container.Redelivery{MaxAttempts: 3}}
		broker := amqp.New(url, amqp.Config{})
		for round := range rounds {
			q.publish(l, round*total/rounds, total/rounds, keys)
			c := consumeFrom(t, broker.Queue("orders", amqp.QueueConfig{}), cfg, h)
			before := l.Done()
			eventually(t, 20*time.Second, "some were handled", func() bool { return l.Done() > before+100 })
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		consumeFrom(t, broker.Queue("orders", amqp.QueueConfig{}), cfg, h)
		eventually(t, 60*time.Second, "all are done", func() bool { return l.Done() == total })
		// A channel keeps back acks for a quorum queue that lags, and drops them when it is
		// closed: the handlers' calls of the last moments are repeated then.
		allow := oracle.Allow{Ordered: true}
		if args["x-queue-type"] == "quorum" {
			allow.Twice = rounds * 2 * 16
		}
		check(t, l, allow)
	})
}

// F-A03, F-A07: the broker stops answering when a container stops that has retries to give
// back whose attempts the queue cannot count: they would have to be published.
func TestStopInABlackHoleEndsInTime(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		q.publish(l, 0, 20, 5)
		proxy, purl := proxied(t, url)
		var mu sync.Mutex
		failed := map[string]int{}
		c := consumeFrom(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
			container.Config{Workers: container.Workers{Min: 4, Max: 4}, DrainTimeout: time.Second, CancelGrace: time.Second,
				Redelivery: container.Redelivery{MaxAttempts: 100, Backoff: container.Backoff{Initial: 50 * time.Millisecond, Max: 900 * time.Millisecond}}},
			func(_ context.Context, d *longshore.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				failed[string(d.Body)]++
				return errors.New("not yet")
			})
		eventually(t, 20*time.Second, "all have failed three times", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range failed {
				if n < 3 {
					return false
				}
			}
			return len(failed) == 20
		})
		proxy.BlackHole(true)
		begin := time.Now()
		_ = c.Stop(t.Context()) // that it could not flush is not the point here
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("stop took %v with a budget of 1 s + 1 s", took)
		}
		proxy.BlackHole(false)
		proxy.CutAll()
		eventually(t, 20*time.Second, "all are back", func() bool { ready, _ := q.depth(); return ready == 20 })
	})
}
