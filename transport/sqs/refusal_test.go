package sqs_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// slowly runs a container whose one message takes long, and counts how often its
// handler began.
func slowly(t *testing.T, s *sqstest.Server, handler time.Duration) (starts *atomic.Int32) {
	t.Helper()
	s.CreateQueue(t, "orders", nil)
	publish(t, sqs.New(s.Config()), "orders", "", "a")
	starts = new(atomic.Int32)
	run(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), func(ctx context.Context, _ *longshore.Delivery) error {
		starts.Add(1)
		select {
		case <-time.After(handler):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, container.Config{Workers: container.Workers{Min: 2, Max: 2}})
	until(t, time.Minute, "the handler begins", func() bool { return starts.Load() == 1 })
	return starts
}

// A queue that asks for fewer calls, for minutes, is not away: nobody's handler is
// cancelled for it, and what comes later is received. F-D01, F-F05.
func TestThrottledPollsEndNothing(t *testing.T) {
	for _, code := range []string{"OverLimit", "RequestThrottled", "KMS.ThrottlingException"} {
		t.Run(code, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				starts := slowly(t, s, 2*time.Minute)
				remove := s.Inject(sqstest.Fault{Action: "ReceiveMessage", Code: code})
				wait(5 * time.Minute)
				if n := len(s.Calls("ReceiveMessage")); n > 100 {
					t.Errorf("%d polls in 5 minutes", n)
				}
				remove()
				if starts.Load() != 1 || state(t, s, "orders").Hidden != 0 {
					t.Errorf("the handler began %d times, %+v", starts.Load(), state(t, s, "orders"))
				}
				publish(t, sqs.New(s.Config()), "orders", "", "b")
				until(t, 10*time.Second, "the next message", func() bool { return starts.Load() == 2 })
			})
		})
	}
}

// A proxy that ends what is silent for 15 s is no outage either: polls become shorter
// than that. F-D01.
func TestPollsThatAProxyCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		cfg := s.Config()
		cfg.HTTPClient = impatient{next: cfg.HTTPClient, limit: 15 * time.Second}
		w := &watcher{}
		c := open(t, sqs.New(cfg).Queue("orders", sqs.QueueConfig{}), w)
		publish(t, sqs.New(s.Config()), "orders", "", "a")
		first := take(t, c, 1)[0] // held all the time
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		if _, err := c.Receive(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Receive: %v", err)
		}
		publish(t, sqs.New(s.Config()), "orders", "", "b")
		began := time.Now()
		take(t, c, 1)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a message came after %s", took)
		}
		must(t, first.Ack(t.Context()))
		if n := w.told("receiving fails"); n > 2 {
			t.Errorf("told of %d failures in 30 minutes", n)
		}
		if lost, _, downs := w.counts(); lost+downs > 0 {
			t.Errorf("%d leases lost, down %d times", lost, downs)
		}
	})
}

// Deletes that are throttled go on until the lease ends: given up, each would be one
// more run of a handler. F-D04.
func TestThrottledDeletesAreNotGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		publish(t, sqs.New(s.Config()), "orders", "", numbered(10)...)
		remove := s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Code: "RequestThrottled"})
		var seen journal
		run(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			return nil
		}, container.Config{})
		wait(20 * time.Second)
		remove()
		wait(time.Minute)
		if st := state(t, s, "orders"); seen.len() != 10 || st.Visible+st.Hidden != 0 {
			t.Errorf("%d handled of 10, %+v", seen.len(), st)
		}
		if n := len(s.Calls("DeleteMessageBatch")); n > 40 {
			t.Errorf("%d calls to delete one batch", n)
		}
	})
}

// A server that refuses a batch for the sake of one, or of their number, gets them one
// by one: those beside it are published, deleted and extended. F-D04.
func TestBatchThatIsRefusedAsAWhole(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		cfg := s.Config()
		cfg.HTTPClient = &fussy{next: cfg.HTTPClient, bad: "poison"}
		b := sqs.New(cfg)
		p, err := b.Publisher(sqs.PublisherConfig{})
		must(t, err)
		var msgs []*longshore.Message
		for i, body := range numbered(25) {
			if i == 13 {
				body = "poison"
			}
			msgs = append(msgs, &longshore.Message{Body: []byte(body)})
		}
		failed := partial(t, p.Publish(t.Context(), "orders", msgs...))
		if len(failed) != 1 || !errors.Is(failed[13], longshore.CodeRefused) {
			t.Errorf("failed: %v, want the 14th", failed)
		}
		must(t, p.Close(t.Context()))

		w := &watcher{}
		c := open(t, b.Queue("orders", sqs.QueueConfig{}), w)
		ds := take(t, c, 24)
		receipt := receiptOf(ds[3])
		cfg.HTTPClient.(*fussy).refuse(receipt) //nolint:errcheck // it is one
		wait(5 * time.Minute)                   // extensions
		if lost, _, _ := w.counts(); lost != 1 {
			t.Errorf("%d leases lost, want the one that is refused", lost)
		}
		for i, d := range ds {
			if i != 3 {
				must(t, d.Ack(t.Context()))
			}
		}
		wait(10 * time.Second)
		if _, failed, _ := w.counts(); failed != 0 || state(t, s, "orders").Hidden > 1 {
			t.Errorf("%d deletes failed, %+v", failed, state(t, s, "orders"))
		}
	})
}

// A message that was changed on its way does not hide those beside it. F-D04.
func TestGarbledMessageHarmsNoOther(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		t.Run(queue, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, queue, nil)
				publish(t, sqs.New(s.Config()), queue, "k", numbered(5)...)
				cfg := s.Config()
				noise := &altered{next: cfg.HTTPClient, change: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"m00002"`), []byte(`"m0000X"`)) }}
				cfg.HTTPClient = noise
				w := &watcher{}
				c := open(t, sqs.New(cfg).Queue(queue, sqs.QueueConfig{}), w)
				clean := 4
				if queue == "orders.fifo" { // none overtakes it
					clean = 2
				}
				for _, d := range take(t, c, clean) {
					must(t, d.Ack(t.Context()))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				if ds, err := c.Receive(ctx, 5); err == nil {
					t.Errorf("%q came", ds[0].Body)
				}
				noise.quiet.Store(true)
				for i, d := range take(t, c, 5-clean) {
					if i == 0 && string(d.Body) != "m00002" {
						t.Errorf("%q came", d.Body)
					}
					must(t, d.Ack(t.Context()))
				}
				if n := w.told("changed on its way"); n < 1 || n > 7 {
					t.Errorf("told %d times in 5 minutes", n)
				}
			})
		})
	}
}

// Messages without an id, as a server of another make may send them, are not taken for
// one and the same. F-D05.
func TestMessagesWithoutAnID(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		publish(t, sqs.New(s.Config()), "orders", "", numbered(20)...)
		cfg := s.Config()
		cfg.HTTPClient = &altered{next: cfg.HTTPClient, change: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"MessageId"`), []byte(`"Nothing"`)) }}
		var seen journal
		run(t, sqs.New(cfg).Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			return nil
		}, container.Config{Workers: container.Workers{Min: 3, Max: 3}})
		wait(2 * time.Minute)
		if st := state(t, s, "orders"); seen.len() != 20 || st.Visible+st.Hidden != 0 {
			t.Errorf("%d handled of 20, %+v", seen.len(), st)
		}
	})
}

// Receives fail for minutes and everything else works: the container is not ready all
// the time, not only for a moment at each opening. F-L04.
func TestReceivesThatFailForLong(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		var seen journal
		c, _ := run(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			return nil
		}, container.Config{})
		remove := s.Inject(sqstest.Fault{Action: "ReceiveMessage", Code: "ServiceUnavailable"})
		wait(time.Minute)
		ready := 0
		for range 300 {
			wait(time.Second)
			if c.Stats().Ready {
				ready++
			}
		}
		if ready > 10 {
			t.Errorf("ready for %d of 300 s", ready)
		}
		remove()
		publish(t, sqs.New(s.Config()), "orders", "", "a")
		until(t, time.Minute, "it goes on", func() bool { return seen.len() == 1 && c.Stats().Ready })
	})
}
