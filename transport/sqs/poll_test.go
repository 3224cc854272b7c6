package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-D01: polls end by stop and pause while messages arrive; the queue hides what it
// hands out for 200 s.
func TestCancelledLongPollOrphansNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "200"})
		broker := sqs.New(s.Config())
		var seen journal
		sent := map[string]time.Time{}
		handled := map[string]time.Time{}
		for i := range 50 {
			_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
				seen.add(string(d.Body))
				seen.mu.Lock()
				defer seen.mu.Unlock()
				handled[string(d.Body)] = time.Now()
				return nil
			}, container.Config{})
			wait(time.Duration(i%7) * 100 * time.Millisecond)
			body := fmt.Sprintf("m%d", i)
			seen.mu.Lock()
			sent[body] = time.Now()
			seen.mu.Unlock()
			publish(t, broker, "orders", "", body)
			start := time.Now()
			stop()
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("Stop took %s", took)
			}
			if st := state(t, s, "orders"); st.Hidden != 0 {
				t.Errorf("%d messages hidden after Stop %d", st.Hidden, i)
			}
		}
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			handled[string(d.Body)] = time.Now()
			return nil
		}, container.Config{})
		defer stop()
		until(t, 30*time.Second, "all are handled", func() bool { seen.mu.Lock(); defer seen.mu.Unlock(); return len(handled) == 50 })
		for body, at := range sent {
			if d := handled[body].Sub(at); d > 60*time.Second {
				t.Errorf("%s was handled after %s", body, d)
			}
		}
	})
}

// F-D01: the answer is lost on the wire after the server handed the messages out.
func TestLostAnswerComesAgainLongBeforeTheTimeout(t *testing.T) {
	for queue, limit := range map[string]time.Duration{"orders": 21 * time.Second, "orders.fifo": time.Second} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "200"})
			broker := sqs.New(s.Config())
			var w watcher
			c := open(t, broker.Queue(queue, sqs.QueueConfig{}), &w)
			s.Inject(sqstest.Fault{Action: "ReceiveMessage", Lose: true, Times: 1})
			publish(t, broker, queue, "k", "a")
			start := time.Now()
			ds := take(t, c, 1)
			if took := time.Since(start); took > limit {
				t.Errorf("%s: handed out after %s, want %s", queue, took, limit)
			}
			must(t, ds[0].Ack(t.Context()))
			must(t, c.Close(t.Context()))
			if st := state(t, s, queue); st != (sqstest.QueueState{}) {
				t.Errorf("%s: left %+v", queue, st)
			}
			if _, _, downs := w.counts(); downs != 0 {
				t.Errorf("%s: one lost answer ended the consumer: %v", queue, w.downs)
			}
		})
	}
}

// F-D01: the server has handed the messages out when the poll is cut off, and its
// answer never comes. A FIFO queue gives them out once more, so they go back at
// once; of a standard queue they come again after the short lease of a quiet poll.
func TestPollCutOffAtTheMomentMessagesArrive(t *testing.T) {
	for queue, limit := range map[string]time.Duration{"orders": 21 * time.Second, "orders.fifo": 0} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "200"})
			broker := sqs.New(s.Config())
			hold := make(chan struct{})
			s.Inject(sqstest.Fault{Action: "ReceiveMessage", Hold: hold, Times: 1})
			_, stop := run(t, broker.Queue(queue, sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
				return errors.New("nobody is to be called")
			}, container.Config{})
			publish(t, broker, queue, "g", "a", "b", "c")
			until(t, time.Second, "a poll", func() bool { return state(t, s, queue).Hidden > 0 })
			start := time.Now()
			stop()
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("%s: Stop took %s", queue, took)
			}
			start = time.Now()
			until(t, time.Minute, "all are visible", func() bool { return state(t, s, queue) == sqstest.QueueState{Visible: 3} })
			if took := time.Since(start); took > limit {
				t.Errorf("%s: visible after %s, want %s", queue, took, limit)
			}
			close(hold)
		})
	}
}

// F-D01: a broker that answers slowly hears late of a poll that was cut off, and is asked
// for what it gave it for as long as it needs.
func TestPollCutOffOnASlowBroker(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "200"})
		broker := sqs.New(s.Config())
		handled := make(chan struct{}, 1)
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
			handled <- struct{}{}
			return nil
		}, container.Config{})
		s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Latency: 700 * time.Millisecond})
		publish(t, broker, "orders.fifo", "g", "a")
		<-handled
		until(t, 5*time.Second, "a is deleted", func() bool { return state(t, s, "orders.fifo") == sqstest.QueueState{} })
		hold := make(chan struct{})
		s.Inject(sqstest.Fault{Action: "ReceiveMessage", Hold: hold, Times: 1})
		s.Inject(sqstest.Fault{Action: "ReceiveMessage", Latency: 700 * time.Millisecond})
		wait(25 * time.Second) // the poll that was open is over
		publish(t, broker, "orders.fifo", "g", "b", "c")
		until(t, time.Second, "a poll", func() bool { return state(t, s, "orders.fifo").Hidden > 0 })
		start := time.Now()
		stop()
		if took := time.Since(start); took > 1500*time.Millisecond {
			t.Errorf("Stop took %s", took)
		}
		if st := state(t, s, "orders.fifo"); st != (sqstest.QueueState{Visible: 2}) {
			t.Errorf("%+v after Stop", st)
		}
		close(hold)
	})
}

// F-A04: an answer is held until 100 ms after Stop began, with a deep backlog.
func TestAnswerAfterStopGoesBack(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "200"})
			broker := sqs.New(s.Config())
			publish(t, broker, queue, "", numbered(300)...)
			for round := range 50 {
				hold := make(chan struct{})
				remove := s.Inject(sqstest.Fault{Action: "ReceiveMessage", Hold: hold})
				_, stop := run(t, broker.Queue(queue, sqs.QueueConfig{}), func(ctx context.Context, _ *longshore.Delivery) error {
					return errors.New("nobody is to be called")
				}, container.Config{})
				until(t, time.Second, "a poll", func() bool { return state(t, s, queue).Hidden > 0 })
				time.AfterFunc(100*time.Millisecond, func() { remove(); close(hold) })
				start := time.Now()
				stop()
				if took := time.Since(start); took > 300*time.Millisecond {
					t.Errorf("round %d: Stop took %s", round, took)
				}
				if st := state(t, s, queue); st.Hidden != 0 || st.Visible != 300 {
					t.Errorf("round %d: %+v after Stop", round, st)
				}
			}
		})
	}
}

// An idle queue costs one long poll in 20 s, whatever it cost before.
func TestIdleQueueIsPolledByOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(500)...)
		var seen journal
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			wait(10 * time.Millisecond)
			return nil
		}, container.Config{Workers: container.Workers{Min: 50, Max: 50}})
		defer stop()
		until(t, time.Minute, "all are handled", func() bool { return seen.len() == 500 })
		wait(time.Minute)
		s.ForgetCalls()
		wait(10 * time.Minute)
		if n := s.Count("ReceiveMessage"); n > 31 {
			t.Errorf("%d polls in 10 idle minutes, want 30", n)
		}
		if n := s.Count("ChangeMessageVisibilityBatch", "DeleteMessageBatch"); n != 0 {
			t.Errorf("%d calls to settle nothing", n)
		}
	})
}

// At load: ten per call both ways.
func TestCallsPerMessage(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		s.Inject(sqstest.Fault{Latency: 5 * time.Millisecond})
		broker := sqs.New(s.Config())
		const n = 6_000
		publish(t, broker, "orders", "", numbered(n)...)
		s.ForgetCalls()
		var seen journal
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			wait(10 * time.Millisecond)
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.seen = append(seen.seen, "")
			return nil
		}, container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		start := time.Now()
		until(t, time.Hour, "all are handled", func() bool { return seen.len() == n })
		took := time.Since(start)
		stop()
		calls := s.Count("ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
		t.Logf("%d calls for %d messages: %.4f each; %.0f messages a second", calls, n, float64(calls)/n, n/took.Seconds())
		if ratio := float64(calls) / n; ratio > 0.21 {
			t.Errorf("%.4f calls per message, want at most 0.21", ratio)
		}
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// Behind a link on which each answer takes seconds, polls run beside each other as behind
// a fast one.
func TestPollsBehindASlowLink(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		const n = 600
		publish(t, broker, "orders", "", numbered(n)...)
		s.Inject(sqstest.Fault{Latency: 2 * time.Second})
		var done atomic.Int32
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
			done.Add(1)
			return nil
		}, container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		start := time.Now()
		until(t, time.Hour, "all are handled", func() bool { return done.Load() == n })
		if took := time.Since(start); took > 40*time.Second { // one after the other: 120 s
			t.Errorf("%d messages took %s", n, took)
		}
		stop()
	})
}

// Stop of an idle container, over TCP, while a poll of 20 s is open.
func TestIdleContainerStopsIn300Milliseconds(t *testing.T) {
	s := sqstest.New(t)
	s.CreateQueue(t, "orders", nil)
	_, stop := run(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error { return nil }, container.Config{})
	until(t, 5*time.Second, "a poll", func() bool { return s.Count("ReceiveMessage") > 0 })
	start := time.Now()
	stop()
	if took := time.Since(start); took > 300*time.Millisecond {
		t.Errorf("Stop took %s", took)
	}
}

// F-F05: what cannot start soon is not received, so nothing is dead-lettered.
func TestThrottlingCostsNoReceives(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "10", "RedrivePolicy": redrive(s, "dead", 3)})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(500)...)
		var seen journal
		gate := &ratePerSecond{}
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			if n := seen.add(string(d.Body)); n > 1 {
				t.Errorf("%s was started %d times", d.Body, n)
			}
			if d.Attempt != 1 || d.Origin.Redelivered {
				t.Errorf("%s: attempt %d, redelivered %t", d.Body, d.Attempt, d.Origin.Redelivered)
			}
			return nil
		}, container.Config{Throttle: gate})
		wait(120 * time.Second)
		stop()
		if n := seen.len(); n < 110 || n > 125 {
			t.Errorf("%d started in 120 s at one a second", n)
		}
		if st := state(t, s, "dead"); st.Visible != 0 {
			t.Errorf("%d dead-lettered", st.Visible)
		}
		if st := state(t, s, "orders"); st.Hidden != 0 {
			t.Errorf("%d hidden after Stop", st.Hidden)
		}
	})
}

// F-D01, F-A04: a pause that a stop calls off leaves its polls their time. The
// answer, with ten messages, comes when both have begun.
func TestStopDuringPauseOrphansNothing(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		for gap := time.Duration(0); gap < 150*time.Millisecond; gap += 20 * time.Millisecond {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "200"})
				broker := sqs.New(s.Config())
				hold := make(chan struct{})
				remove := s.Inject(sqstest.Fault{Action: "ReceiveMessage", Hold: hold})
				c, stop := run(t, broker.Queue(queue, sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
					return errors.New("nobody is to be called")
				}, container.Config{})
				publish(t, broker, queue, "", numbered(10)...)
				until(t, time.Second, "a poll", func() bool { return state(t, s, queue).Hidden > 0 })
				time.AfterFunc(180*time.Millisecond, func() { remove(); close(hold) })
				start := time.Now()
				c.Pause()
				wait(gap)
				stop()
				if took := time.Since(start); took > 300*time.Millisecond {
					t.Errorf("%s: the stop %s after the pause took until %s", queue, gap, took)
				}
				if st := state(t, s, queue); st != (sqstest.QueueState{Visible: 10}) {
					t.Errorf("%s: %+v after a stop that came %s after the pause", queue, st, gap)
				}
			})
		}
	}
}

// F-D01: whoever ends the polls and gives up waiting, they have their time, and no
// more than that.
func TestPollsKeepTheirTimeWhenTheirEndIsCalledOff(t *testing.T) {
	ends := map[string]func(transport.Consumer, context.Context) error{
		"Pause":  func(c transport.Consumer, ctx context.Context) error { return c.(transport.Pauser).Pause(ctx) }, //nolint:errcheck // it is one
		"Cancel": transport.Consumer.Cancel,
	}
	for name, end := range ends {
		for _, arrives := range []bool{true, false} {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "200"})
				broker := sqs.New(s.Config())
				c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
				hold := make(chan struct{})
				s.Inject(sqstest.Fault{Action: "ReceiveMessage", Hold: hold, Times: 1})
				ctx, cancel := context.WithCancel(t.Context())
				received := make(chan error, 1)
				go func() { _, err := c.Receive(ctx, 10); received <- err }()
				until(t, time.Second, "a poll", func() bool { return s.Count("ReceiveMessage") == 1 })
				if arrives {
					publish(t, broker, "orders", "", numbered(10)...)
					until(t, time.Second, "it is answered", func() bool { return state(t, s, "orders").Hidden == 10 })
				}
				time.AfterFunc(150*time.Millisecond, func() { close(hold) })
				cancel()
				if err := <-received; !errors.Is(err, context.Canceled) {
					t.Errorf("%s: Receive returned %v", name, err)
				}
				if err := end(c, ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, called off: %v", name, err)
				}
				wait(201 * time.Millisecond)
				if calls := s.Calls("ReceiveMessage"); len(calls) != 1 || !calls[0].Done {
					t.Errorf("%s: polls after their time: %+v", name, calls)
				}
				wait(time.Second) // returns are sent together
				if st := state(t, s, "orders"); arrives && st != (sqstest.QueueState{Visible: 10}) {
					t.Errorf("%s: %+v after it was called off", name, st)
				}
				must(t, c.Close(t.Context()))
			})
		}
	}
}

// A pause that is taken back waits for no poll: they are wanted again.
func TestResumeEndsAPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		received := make(chan int, 1)
		go func() { ds, _ := c.Receive(t.Context(), 10); received <- len(ds) }()
		until(t, time.Second, "a poll", func() bool { return s.Count("ReceiveMessage") == 1 })
		paused := make(chan error, 1)
		p, _ := c.(transport.Pauser)
		go func() { paused <- p.Pause(t.Context()) }()
		wait(100 * time.Millisecond)
		must(t, p.Resume(t.Context()))
		start := time.Now()
		must(t, <-paused)
		if took := time.Since(start); took > 0 {
			t.Errorf("Pause returned %s after Resume", took)
		}
		wait(time.Second)
		publish(t, broker, "orders", "", "a")
		if n := <-received; n != 1 {
			t.Errorf("%d received", n)
		}
		if n := s.Count("ReceiveMessage"); n != 1 {
			t.Errorf("%d polls, want the one that was open", n)
		}
	})
}
