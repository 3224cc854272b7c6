package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-N05: partitions that go to another member start nothing more here. Their running
// handlers end within the drain; were the others started meanwhile, the end of the drain
// would cut them off, and both owners would have worked on the same key.
func TestKafkaLeavingPartitionsStartNothing(t *testing.T) {
	onKafka(t, 4, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		l := oracle.New()
		const total = 60
		k.publish(l, 0, total, 30)
		var second atomic.Bool
		work := func(name string, took time.Duration) longshore.HandlerFunc {
			return func(ctx context.Context, d *longshore.Delivery) error {
				end := l.Begin(string(d.Body), string(d.Key))
				if name == "second" {
					second.Store(true)
				}
				select {
				case <-time.After(took):
				case <-ctx.Done():
				}
				end(d.Owned() && ctx.Err() == nil)
				return ctx.Err()
			}
		}
		cfg := container.Config{Workers: container.Workers{Min: 4, Max: 4}, Lookahead: total, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}
		group := kafka.GroupConfig{Protocol: p, RebalanceDrain: 2 * time.Second, Start: kafka.Earliest}
		first := consumeFrom(t, k.group(group), cfg, work("first", 1500*time.Millisecond))
		eventually(t, 30*time.Second, "the first member is at work", func() bool { return first.Stats().Busy == 4 })
		consumeFrom(t, k.group(group), cfg, work("second", 20*time.Millisecond))
		eventually(t, 30*time.Second, "the second member has work", second.Load)
		eventually(t, 90*time.Second, "all are done", func() bool { return l.Done() == total })
		if lost := first.Stats().Lost; lost != 0 {
			t.Errorf("%d deliveries were lost with their partitions", lost)
		}
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// F-N06: a retry that waits for its time does not hold up a rebalance.
func TestKafkaParkedRetryDoesNotHoldUpARebalance(t *testing.T) {
	onKafka(t, 4, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		l := oracle.New()
		const total = 60
		k.publish(l, 0, total, 60)
		var failed, done atomic.Int32
		fails := func(context.Context, *longshore.Delivery) error {
			failed.Add(1)
			return longshore.Retry(errors.New("not yet"), 5*time.Minute)
		}
		cfg := container.Config{Order: container.ByKey, Redelivery: container.Redelivery{MaxAttempts: 10},
			DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}
		group := kafka.GroupConfig{Protocol: p, RebalanceDrain: 25 * time.Second, Start: kafka.Earliest}
		first := consumeFrom(t, k.group(group), cfg, fails)
		eventually(t, 30*time.Second, "all wait for their retry", func() bool { return first.Stats().Parked == total })
		began := time.Now()
		consumeFrom(t, k.group(group), cfg, func(context.Context, *longshore.Delivery) error { done.Add(1); return nil })
		eventually(t, 60*time.Second, "the second member has some of them", func() bool { return done.Load() > 0 })
		if took := time.Since(began); took > group.RebalanceDrain/2 {
			t.Errorf("the second member waited %v for partitions of which nothing ran", took)
		}
		if n := failed.Load(); n != total {
			t.Errorf("%d calls by the first member, want %d", n, total)
		}
	})
}
