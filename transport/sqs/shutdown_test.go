package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-A01: our own stop is neither success nor failure.
func TestStopCancelsHandlersAndNothingIsDeadLettered(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "300", "RedrivePolicy": redrive(s, "dead", 5)})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(100)...)
		src := broker.Queue("orders", sqs.QueueConfig{})
		for range 3 {
			c, err := container.New(src, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				if d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
				<-ctx.Done()
				return ctx.Err()
			}), container.Config{DrainTimeout: time.Second, Workers: container.Workers{Min: 10, Max: 10}})
			must(t, err)
			must(t, c.Start(t.Context()))
			wait(2 * time.Second)
			_ = c.Stop(t.Context()) // it says what it gave up
			wait(2 * time.Second)
			if st := state(t, s, "orders"); st.Visible != 100 || st.Hidden != 0 {
				t.Errorf("%+v two seconds after Stop", st)
			}
		}
		if st := state(t, s, "dead"); st.Visible != 0 {
			t.Errorf("%d dead-lettered", st.Visible)
		}
	})
}

// What waits behind the heads of groups does not hold the drain up.
func TestDrainDoesNotWaitForGroups(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "300"})
		broker := sqs.New(s.Config())
		for i := range 20 {
			publish(t, broker, "orders.fifo", fmt.Sprintf("c-%d", i%4), numbered(5)...)
		}
		c, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(ctx context.Context, _ *longshore.Delivery) error {
			wait(100 * time.Millisecond)
			return nil
		}, container.Config{Workers: container.Workers{Min: 2, Max: 2}})
		wait(time.Second)
		stop()
		if rep := c.Report(); rep.Took > time.Second {
			t.Errorf("%v", rep)
		}
		wait(2 * time.Second)
		if st := state(t, s, "orders.fifo"); st.Hidden != 0 || st.Visible == 0 {
			t.Errorf("%+v after the stop", st)
		}
	})
}

// F-A03: one to nine are done, below the batch, with a linger of an hour.
func TestSettlementsBelowTheBatchAreFlushedAtStop(t *testing.T) {
	for n := 1; n <= 9; n++ {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "43200"})
			broker := sqs.New(s.Config())
			publish(t, broker, "orders", "", numbered(n)...)
			var seen journal
			_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{SettleLinger: time.Hour}), func(_ context.Context, d *longshore.Delivery) error {
				seen.add(string(d.Body))
				return nil
			}, container.Config{})
			until(t, time.Second, "all are handled", func() bool { return seen.len() == n })
			wait(time.Second)
			if st := state(t, s, "orders"); st.Hidden != n {
				t.Errorf("%d: %+v before Stop, the linger does not hold", n, st)
			}
			start := time.Now()
			stop()
			if took := time.Since(start); took > time.Second {
				t.Errorf("Stop took %s", took)
			}
			if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
				t.Errorf("%d: left %+v", n, st)
			}
		})
	}
}

// F-A03: the broker cannot be reached: bounded, and what was not sent is named.
func TestStopWithoutTheBrokerNamesWhatWasNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "43200"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(5)...)
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{SettleLinger: time.Hour}), &w)
		for _, d := range take(t, c, 5) {
			must(t, d.Ack(t.Context()))
		}
		s.Inject(sqstest.Fault{Cut: true})
		limit := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		start := time.Now()
		must(t, c.Cancel(limit()))
		if err := c.Flush(limit()); err == nil {
			t.Error("Flush returned nil")
		}
		if err := c.Close(limit()); err == nil {
			t.Log("Close had nothing left to say")
		}
		if took := time.Since(start); took > 7*time.Second {
			t.Errorf("took %s", took)
		}
		if _, failed, _ := w.counts(); failed != 5 {
			t.Errorf("%d reported, want 5", failed)
		}
	})
}

// F-B01: the queue is found, and the first receives fail; nothing has to be
// reopened, and it goes on by itself.
func TestFirstReceivesFailAndItGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		s.Inject(sqstest.Fault{Action: "ReceiveMessage", Code: "ServiceUnavailable", Times: 3})
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		start := time.Now()
		must(t, take(t, c, 1)[0].Ack(t.Context()))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("went on after %s", took)
		}
		synctest.Wait()
		events := w.seen()
		if _, _, downs := w.counts(); downs != 0 || len(events) != 2 || events[1].Condition != events[0].Condition { // one notice, and its end
			t.Errorf("%d downs, events %v", downs, events)
		}
		must(t, c.Close(t.Context()))
	})
}

// A queue that is deleted, or a server that stays away, ends the consumer with a
// typed error, told once.
func TestConsumerEndsWithATypedError(t *testing.T) {
	for code, want := range map[string]longshore.Code{"QueueDoesNotExist": longshore.CodeNotFound, "AccessDenied": longshore.CodeForbidden,
		"InvalidClientTokenId": longshore.CodeAuth, "ServiceUnavailable": longshore.CodeUnreachable} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			var w watcher
			c := open(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), &w)
			s.Inject(sqstest.Fault{Action: "ReceiveMessage", Code: code})
			start := time.Now()
			_, err := c.Receive(t.Context(), 1)
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want the code %s", code, err, want)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: after %s", code, took)
			}
			if _, again := c.Receive(t.Context(), 1); !errors.Is(again, want) {
				t.Errorf("%s: then %v", code, again)
			}
			must(t, c.Close(t.Context()))
			if _, _, downs := w.counts(); downs != 1 {
				t.Errorf("%s: told %d times", code, downs)
			}
		})
	}
}

// F-J03: credentials are asked for again when they are refused.
func TestChangedCredentialsAreUsedWithoutARestart(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker, change := rotating(s)
		var seen journal
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			return nil
		}, container.Config{})
		wait(time.Minute)
		change()
		publish(t, sqs.New(s.Config()), "orders", "", "a")
		until(t, time.Minute, "a message behind the change", func() bool { return seen.len() == 1 })
		stop()
	})
}

// Looking at a stopped container works and leaves no connection open.
func TestIdleOfAStoppedContainerLeavesNoConnection(t *testing.T) {
	t.Parallel()
	s := sqstest.New(t)
	s.CreateQueue(t, "orders", nil)
	u, err := url.Parse(s.URL)
	must(t, err)
	proxy := faultproxy.New(t, u.Host)
	cfg := s.Config()
	cfg.Endpoint, cfg.HTTPClient = "http://"+proxy.Addr(), nil
	c, stop := run(t, sqs.New(cfg).Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error { return nil }, container.Config{})
	until(t, time.Minute, "it polls", func() bool { return len(s.Calls("ReceiveMessage")) > 0 || proxy.Live() > 0 })
	stop()
	none := func() bool { return proxy.Live() == 0 }
	until(t, time.Minute, "the stop leaves no connection", none)
	for range 3 {
		if idle, err := c.Idle(t.Context()); err != nil || !idle {
			t.Errorf("Idle: %t, %v", idle, err)
		}
	}
	if len(s.Calls("GetQueueAttributes")) < 3 {
		t.Error("Idle did not ask the queue")
	}
	until(t, time.Minute, "Idle leaves no connection", none)
}
