package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// blockedOn counts what is handled beside one key, on which block is called.
func blockedOn(key string, others *atomic.Int64, block func(ctx context.Context) error) longshore.HandlerFunc {
	return func(ctx context.Context, d *longshore.Delivery) error {
		if string(d.Key) == key {
			return block(ctx)
		}
		others.Add(1)
		return nil
	}
}

func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// One handler hangs on one of 50 keys, with the defaults: all messages of the others are
// handled, and the workers follow the load.
//
// F-N33
func TestHungHandlerHoldsNoOtherKeyUpOnRabbitMQ(t *testing.T) {
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		const total, keys = 8000, 50
		var others atomic.Int64
		c := consumeFrom(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
			container.Config{Order: container.ByKey, DrainTimeout: -1, CancelGrace: 5 * time.Second}, blockedOn("key-0", &others, hangs))
		for first := 0; first < total; first += 500 {
			q.publish(l, first, 500, keys)
		}
		eventually(t, 60*time.Second, "the other keys are done", func() bool { return others.Load() == total-total/keys })
		if st := c.Stats(); st.Blocked+1 < total/keys || st.Target > 10 {
			t.Errorf("%d wait behind what hangs; target %d", st.Blocked, st.Target)
		}
		stops(t, c)
	})
}

// A record that is kept holds its key up, or with an order by partition its partition, and
// no other one.
//
// F-N33
func TestKeptRecordHoldsNoOtherPartitionUpOnKafka(t *testing.T) {
	for _, order := range []container.Order{container.ByKey, container.ByPartition} {
		t.Run(order.String(), func(t *testing.T) {
			onKafka(t, 4, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) { keptHoldsNoOther(t, k, p, order) })
		})
	}
}

func keptHoldsNoOther(t *testing.T, k *kafkaTopic, p kafka.Protocol, order container.Order) {
	const total, keys = 12_000, 24
	k.publish(oracle.New(), 0, total, keys)
	var done [4]atomic.Int64 // by partition
	var blocked atomic.Int32
	c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{Order: order,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Redelivery: container.Redelivery{Backoff: container.Backoff{Max: time.Hour}}},
		func(_ context.Context, d *longshore.Delivery) error {
			if string(d.Key) == "k0" {
				blocked.Store(d.Origin.Partition)
				return longshore.Reject(errors.New("kept"))
			}
			done[d.Origin.Partition].Add(1)
			return nil
		})
	var all [4]int64
	for part := range all {
		all[part] = k.end(int32(part)) //nolint:gosec // one of four
	}
	eventually(t, 60*time.Second, "the others are done", func() bool {
		for part := range all {
			want := all[part]
			switch {
			case int32(part) != blocked.Load(): //nolint:gosec // one of four
			case order == container.ByPartition:
				continue
			default:
				want -= total / keys
			}
			if done[part].Load() != want {
				return false
			}
		}
		return true
	})
	if n := c.Stats().Parked; n < 330 {
		t.Errorf("%d wait with the kept one: too few to tell", n)
	}
	stops(t, c)
}
