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
)

// F-N07: two containers that send each other their dead letters, ours or RabbitMQ's own,
// come to rest with the message kept.
func TestDeadLettersThatGoRoundOnRabbitMQComeToRest(t *testing.T) {
	for name, native := range map[string]bool{"ours": false, "the broker's": true} {
		t.Run(name, func(t *testing.T) {
			url, l := brokertest.AMQP(t), oracle.New()
			leads := func(to string) amqp091.Table {
				return amqp091.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
			}
			w := newRabbitQueue(t, url, "w", leads("d"))
			w.also("d", leads("w"))
			w.publish(l, 0, 1, 0)
			var runs atomic.Int64
			work := func(context.Context, *longshore.Delivery) error { runs.Add(1); return errors.New("never") }
			both := map[string]string{"w": "d", "d": "w"}
			for from, to := range both {
				cfg := container.Config{Name: from, Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: to}}
				if native {
					cfg.DeadLetter = container.DeadLetter{Policy: container.DeadLetterNative}
				}
				consumeFrom(t, amqp.New(url, amqp.Config{}).Queue(from, amqp.QueueConfig{DeadLettered: true}), cfg, work)
			}
			eventually(t, 20*time.Second, "it has gone round", func() bool { return runs.Load() >= 9 })
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
				if n := runs.Load(); n > 9 {
					t.Fatalf("it has gone on: %d runs", n)
				}
			}
		})
	}
}
