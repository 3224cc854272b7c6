package faults

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/transport/kafka"
)

// stuckOn hangs on one record and handles all others.
func stuckOn(l *oracle.Ledger, body string, hang func(ctx context.Context) error) longshore.HandlerFunc {
	return func(ctx context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), string(d.Key))
		if string(d.Body) == body {
			if err := hang(ctx); err != nil {
				end(false)
				return err
			}
		}
		end(true)
		return nil
	}
}

// The answer "wait" to a stuck record: its partition stands still when the window is
// full, which Stats show with partition, offset, key and age, and the other one goes on.
// F-E07, F-L04
func TestKafkaStuckHeadIsShownAndHoldsItsPartitionOnly(t *testing.T) {
	onKafka(t, 2, stuckHeadIsShown)
}

func stuckHeadIsShown(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
	l := oracle.New()
	k.publish(l, 0, 600, 60)
	release := make(chan struct{})
	c := consumeFrom(t, k.group(kafka.GroupConfig{Window: 50, Protocol: p}), container.Config{Workers: fixed(8), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}},
		stuckOn(l, "0", func(context.Context) error { <-release; return nil }))
	var st container.Stats
	eventually(t, 60*time.Second, "the partition stands still and Stats show it", func() bool {
		st = c.Stats()
		return len(st.BlockedPartitions) == 1 && st.BlockedPartitions[0].Full() && strings.Contains(st.Reason, "stands still")
	})
	h := st.BlockedPartitions[0]
	if !st.Live || !st.Ready || h.Topic != k.name || string(h.Key) != "k0" || h.Position != 0 || time.Since(h.Since) < time.Second {
		t.Errorf("live %t, ready %t, %q, stuck head %+v", st.Live, st.Ready, st.Reason, h)
	}
	other := k.end(1 - h.Partition)
	eventually(t, 20*time.Second, "the other partition is done", func() bool {
		at, err := k.adm.FetchOffsets(context.Background(), k.name)
		o, _ := at.Lookup(k.name, 1-h.Partition)
		return err == nil && o.At == other
	})
	close(release)
	k.idle()
	eventually(t, 20*time.Second, "nothing is stuck", func() bool { st := c.Stats(); return len(st.BlockedPartitions) == 0 && st.Reason == "" })
	stopped(t, c)
	check(t, l, oracle.Allow{Ordered: true})
}

// The answers "retry" and "dead-letter after": the handler's time is limited, so that
// the record fails like any other; with the last attempt it is moved.
func TestKafkaStuckHeadIsRetriedThenMoved(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]int32{"retried": 1, "moved": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKafkaTopic(t, newFake(t).ListenAddrs(), 2)
			dead, l := k.also(".dlt"), oracle.New()
			k.publish(l, 0, 200, 20)
			var calls atomic.Int32
			c := consumeFrom(t, k.group(kafka.GroupConfig{}), container.Config{Workers: fixed(4), Middleware: []longshore.Middleware{middleware.Timeout(200 * time.Millisecond)},
				Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: quickly}, DeadLetter: container.DeadLetter{To: dead}},
				stuckOn(l, "0", func(ctx context.Context) error {
					if calls.Add(1) > hangs {
						return nil
					}
					<-ctx.Done()
					return errors.New("gave up")
				}))
			k.idle()
			stopped(t, c)
			moved := 0
			if name == "moved" {
				moved = 1
			}
			want := map[string]int32{"retried": 2, "moved": 3}[name]
			if calls.Load() != want {
				t.Errorf("%d attempts, want %d", calls.Load(), want)
			}
			if rs := k.records(dead, moved); moved == 1 && string(rs[0].Value) != "0" {
				t.Errorf("moved %q", rs[0].Value)
			}
			if l.Done() != 200-moved {
				t.Errorf("%d done", l.Done())
			}
		})
	}
}

func (k *kafkaTopic) end(partition int32) int64 {
	ends, err := k.adm.ListEndOffsets(context.Background(), k.name)
	if err != nil {
		k.t.Fatal(err)
	}
	o, _ := ends.Lookup(k.name, partition)
	return o.Offset
}
