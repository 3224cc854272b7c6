package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-E04: batch, workers and lookahead fit together, whatever they are: all records
// are handled and nobody waits for a batch that cannot fill.
func TestBatchWorkersAndWindowFitTogether(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, nil)
			broker := sqs.New(s.Config())
			refused := 0
			for _, size := range []int{1, 16, 50} {
				for _, workers := range []int{1, 2, 17} {
					for _, ahead := range []int{-1, 17} {
						var seen journal
						c, err := container.NewBatch(broker.Queue(queue, sqs.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
							for _, d := range ds {
								seen.add(string(d.Key) + string(d.Body))
							}
							return nil
						}, container.Config{Workers: container.Workers{Min: workers, Max: workers}, Lookahead: ahead, Batch: container.Batch{Size: size, Linger: 100 * time.Millisecond}, Logger: zap.NewNop()})
						if errors.Is(err, longshore.CodeConfig) && strings.Contains(err.Error(), "need a window of") {
							refused++
							continue
						}
						must(t, err)
						for i := range 4 {
							publish(t, broker, queue, fmt.Sprint("g", i), numbered(26)...)
						}
						must(t, c.Start(t.Context()))
						start := time.Now()
						until(t, time.Minute, fmt.Sprintf("%s: batch %d, workers %d, lookahead %d", queue, size, workers, ahead), func() bool { return seen.len() == 104 })
						if took := time.Since(start); took > 20*time.Second {
							t.Errorf("%s: batch %d, workers %d, lookahead %d took %s", queue, size, workers, ahead, took)
						}
						must(t, c.Stop(t.Context()))
						if st := state(t, s, queue); st != (sqstest.QueueState{}) {
							t.Fatalf("left %+v", st)
						}
					}
				}
			}
			if refused == 0 || refused > 9 {
				t.Errorf("%d of 18 are refused", refused)
			}
		})
	}
}

// F-G01: orderly restarts, with groups behind their heads and a redrive policy of
// three receives, dead-letter nothing.
func TestRestartsWithGroupsDeadLetterNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead.fifo", nil)
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "300", "RedrivePolicy": redrive(s, "dead.fifo", 3)})
		broker := sqs.New(s.Config())
		for i := range 10 {
			publish(t, broker, "orders.fifo", fmt.Sprint("g", i), numbered(20)...)
		}
		var seen journal
		for range 6 {
			_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
				wait(50 * time.Millisecond)
				if n := seen.add(string(d.Key) + string(d.Body)); n > 1 || d.Attempt != 1 {
					t.Errorf("%s of %s: call %d, attempt %d", d.Body, d.Key, n, d.Attempt)
				}
				return nil
			}, container.Config{Workers: container.Workers{Min: 2, Max: 2}})
			wait(500 * time.Millisecond)
			stop()
		}
		if st := state(t, s, "dead.fifo"); st != (sqstest.QueueState{}) {
			t.Errorf("dead-lettered %+v", st)
		}
		if st := state(t, s, "orders.fifo"); st.Hidden != 0 || st.Visible+seen.len() != 200 {
			t.Errorf("%+v, %d handled", st, seen.len())
		}
		t.Logf("%d handled", seen.len())
	})
}

// F-E02: one group has all the work. More workers would not help, and there are no
// more.
func TestOneGroupNeedsOneWorker(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g", numbered(1000)...)
		var seen journal
		c, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			wait(50 * time.Millisecond)
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.seen = append(seen.seen, string(d.Body))
			return nil
		}, container.Config{Workers: container.Workers{Min: 1, Max: 32}})
		wait(20 * time.Second)
		most := 0
		for range 100 {
			most = max(most, c.Stats().Target)
			wait(200 * time.Millisecond)
		}
		if most > 2 {
			t.Errorf("up to %d workers for one group", most)
		}
		until(t, time.Minute, "all are handled", func() bool { return seen.len() == 1000 })
		stop()
	})
}
