package sqs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// What was put back from a dead-letter queue is not the one that SQS knows; the same
// putting back twice is. Dead twice within five minutes, by whatever hand it came back,
// it is there twice.
func TestReplayIsNoDuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		p, err := sqs.New(s.Config()).Publisher(sqs.PublisherConfig{})
		must(t, err)
		for _, replays := range []int64{0, 1, 1, 2} {
			m := &longshore.Message{ID: "one", Key: []byte("g"), Body: []byte("one")}
			if replays > 0 {
				m.Headers = longshore.Headers{{Name: "longshore-dead-replays", Value: replays}}
			}
			must(t, p.Publish(t.Context(), "orders.fifo", m))
		}
		for _, at := range []string{"2026-01-01T10:00:00.1Z", "2026-01-01T10:00:00.2Z"} {
			must(t, p.Publish(t.Context(), "orders.fifo", &longshore.Message{ID: "one", Key: []byte("g"), Body: []byte("dead"),
				Headers: longshore.Headers{{Name: "longshore-dead-at", Value: at}}}))
		}
		must(t, p.Close(t.Context()))
		if n := len(s.Messages("orders.fifo")); n != 5 {
			t.Errorf("%d messages of two deaths, the first and two replays", n)
		}
	})
}

// The deduplication id is the message's id: what is published twice is there once.
// Without an id each is a message of its own.
func TestDeduplicationFollowsTheMessageID(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		p, err := sqs.New(s.Config()).Publisher(sqs.PublisherConfig{})
		must(t, err)
		long := strings.Repeat("i", 300)
		for range 2 {
			for _, id := range []string{"one", "with blank \u00fc", long} {
				must(t, p.Publish(t.Context(), "orders.fifo", &longshore.Message{ID: id, Key: []byte("g"), Body: []byte(id)}))
			}
			must(t, p.Publish(t.Context(), "orders.fifo", &longshore.Message{Key: []byte("g"), Body: []byte("without")}))
		}
		must(t, p.Close(t.Context()))
		seen := map[string]int{}
		for _, m := range s.Messages("orders.fifo") {
			seen[m.Body]++
			if m.Body == "one" && (m.DedupID != "one" || m.Group != "g") {
				t.Errorf("group %q, deduplication id %q", m.Group, m.DedupID)
			}
		}
		if len(s.Messages("orders.fifo")) != 5 || seen["one"] != 1 || seen[long] != 1 || seen["without"] != 2 {
			t.Errorf("%v", seen)
		}
	})
}

// A delay hides what is sent; FIFO queues have it as an attribute only. A group id
// goes to standard queues unless NoGroups says otherwise.
func TestDelayAndGroupsOfPublishing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		p, err := broker.Publisher(sqs.PublisherConfig{Delay: 90 * time.Second, NoGroups: true})
		must(t, err)
		must(t, p.Publish(t.Context(), "orders", &longshore.Message{Key: []byte("tenant"), Body: []byte("a")}))
		must(t, p.Close(t.Context()))
		if st := state(t, s, "orders"); st.Delayed != 1 {
			t.Errorf("%+v", st)
		}
		if m := s.Messages("orders")[0]; m.Group != "" {
			t.Errorf("group %q with NoGroups", m.Group)
		}
		start := time.Now()
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		if took := time.Since(start); took < 89*time.Second || took > 91*time.Second || string(d.Key) != "tenant" {
			t.Errorf("came after %s with key %q", took, d.Key)
		}
		must(t, d.Ack(t.Context()))
		must(t, c.Close(t.Context()))
		for _, delay := range []time.Duration{-time.Second, 1500 * time.Millisecond, 16 * time.Minute} {
			if _, err := broker.Publisher(sqs.PublisherConfig{Delay: delay}); !errors.Is(err, longshore.CodeConfig) {
				t.Errorf("delay %s: %v", delay, err)
			}
		}
	})
}

// Batches hold ten messages and a megabyte at the most.
func TestPublishedBatchesStayUnderTheLimits(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		p, err := sqs.New(s.Config()).Publisher(sqs.PublisherConfig{})
		must(t, err)
		var msgs []*longshore.Message
		for range 35 {
			msgs = append(msgs, &longshore.Message{Body: []byte("small")})
		}
		for range 6 {
			msgs = append(msgs, &longshore.Message{Body: []byte(strings.Repeat("x", 400_000))})
		}
		must(t, p.Publish(t.Context(), "orders", msgs...))
		must(t, p.Close(t.Context()))
		calls := s.Calls("SendMessageBatch")
		for _, call := range calls {
			size := 0
			for _, e := range call.Entries {
				size += len(e.Body)
			}
			if len(call.Entries) > 10 || size > 1<<20 {
				t.Errorf("a call with %d entries, %d bytes", len(call.Entries), size)
			}
		}
		if n := state(t, s, "orders").Visible; n != len(msgs) || len(calls) > 8 {
			t.Errorf("%d messages by %d calls", n, len(calls))
		}
	})
}

// The deletion policies that users of Spring know: on success is the default,
// always is one attempt and Discard, never is manual settling.
func TestDeletionPoliciesByTheContainersSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg          container.Config
		left, failed int
	}{
		"on success": {container.Config{Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Hour, Max: time.Hour}}}, 1, 1},
		"always":     {container.Config{Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}}, 0, 1},
		"never":      {container.Config{Settle: container.SettleManual}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
				broker := sqs.New(s.Config())
				publish(t, broker, "orders", "", "good", "bad")
				var seen journal
				tc.cfg.DrainTimeout, tc.cfg.Logger = time.Second, zap.NewNop()
				c, err := container.New(broker.Queue("orders", sqs.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
					seen.add(string(d.Body))
					if string(d.Body) == "bad" && tc.failed > 0 {
						return errBad
					}
					return nil
				}), tc.cfg)
				must(t, err)
				must(t, c.Start(t.Context()))
				until(t, time.Minute, "both are handled", func() bool { return seen.len() == 2 })
				wait(time.Minute) // two leases: nothing comes again
				if n := seen.len(); n != 2 {
					t.Errorf("%d calls", n)
				}
				_ = c.Stop(t.Context()) // it says what was never settled
				st := state(t, s, "orders")
				if n := st.Visible + st.Hidden; n != tc.left {
					t.Errorf("%+v, want %d left", st, tc.left)
				}
			})
		})
	}
}

// Polls grow with the load, to MaxPollers and not more.
func TestPollsFanOutUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(1500)...)
		s.Inject(sqstest.Fault{Latency: 50 * time.Millisecond})
		var mu sync.Mutex
		n := 0
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{MaxPollers: 6}), func(context.Context, *longshore.Delivery) error {
			wait(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			n++
			return nil
		}, container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		start := time.Now()
		until(t, time.Minute, "all are handled", func() bool { mu.Lock(); defer mu.Unlock(); return n == 1500 })
		took := time.Since(start)
		stop()
		// One poll alone would take 150 × 50 ms; six take a sixth of it, and a start.
		if took < 1250*time.Millisecond-100*time.Millisecond || took > 3*time.Second {
			t.Errorf("1500 messages in %s", took)
		}
	})
}
