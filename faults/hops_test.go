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

// F-N07: two containers that send each other their dead letters, ours or RabbitMQ's own,
// come to rest with the message kept.
func TestDeadLettersThatGoRoundOnRabbitMQComeToRest(t *testing.T) {
	t.Parallel()
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

// F-N07: on Kafka each move writes another record, and the one that is kept holds its
// partition: two containers on each other's dead letters write eight in all, report the
// cycle once, and the last record stays not done.
func TestDeadLettersThatGoRoundOnKafkaComeToRest(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, w *kafkaTopic, p kafka.Protocol) {
		l, d := oracle.New(), w.also(".d")
		var runs, reported atomic.Int64
		work := func(context.Context, *longshore.Delivery) error { runs.Add(1); return errors.New("never") }
		leads := func(from, to string) *container.ListenerContainer {
			src := w.broker.Group(w.name, []string{from}, kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond})
			if from == d {
				src = w.broker.Group(d, []string{d}, kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond})
			}
			return consumeFrom(t, src, container.Config{Name: from, Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: to},
				OnEvent: func(e container.Event) {
					if e.Kind == container.EventDeadLetterFailed && errors.Is(e.Err, longshore.CodeHops) {
						reported.Add(1)
					}
				}}, work)
		}
		first := leads(w.name, d)
		leads(d, w.name)
		w.publish(l, 0, 1, 1)
		eventually(t, 60*time.Second, "it has gone round", func() bool { return runs.Load() >= 9 && reported.Load() > 0 })
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			if n := runs.Load(); n > 9 {
				t.Fatalf("it has gone on: %d runs", n)
			}
		}
		if n := w.length(w.name) + w.length(d); n != 9 || reported.Load() != 1 {
			t.Errorf("%d records, want the first and eight moves; reported %d times", n, reported.Load())
		}
		eventually(t, 20*time.Second, "what was moved is committed", func() bool { at, _, err := w.committed(); return err == nil && at == 4 })
		stops(t, first)
		if at, end, err := w.committed(); err != nil || at != 4 || end != 5 {
			t.Errorf("committed %d of %d, %v: the record that is kept counts as done", at, end, err)
		}
	})
}
