package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-D06: a1 of g1 = a1 a2 a3 fails once, g2 = b1 b2 came in the same receive.
func TestFailedMessageHoldsBackItsGroupOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "60"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g1", "a1", "a2", "a3")
		publish(t, broker, "orders.fifo", "g2", "b1", "b2")
		var seen journal
		start := time.Now()
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			n := seen.add(string(d.Body))
			if string(d.Body) == "b1" && time.Since(start) > 500*time.Millisecond {
				t.Errorf("b1 started after %s", time.Since(start))
			}
			if string(d.Body) == "a1" && n == 1 {
				return errBad
			}
			return nil
		}, container.Config{Workers: container.Workers{Min: 10, Max: 10}, Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Second, Max: time.Second}}})
		until(t, 10*time.Second, "all are handled", func() bool { return seen.len() == 6 })
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s: somebody waited for a timeout", took)
		}
		stop()
		var g1, g2 []string
		for _, b := range seen.all() {
			if b[0] == 'a' {
				g1 = append(g1, b)
			} else {
				g2 = append(g2, b)
			}
		}
		if strings.Join(g1, " ") != "a1 a1 a2 a3" || strings.Join(g2, " ") != "b1 b2" {
			t.Errorf("order %v and %v", g1, g2)
		}
		if st := state(t, s, "orders.fifo"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// F-D06: a stop in the middle of a group gives the rest back in order, at once.
func TestStopInTheMiddleOfAGroupReleasesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "600"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g", numbered(10)...)
		var seen journal
		handler := func(ctx context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			select {
			case <-time.After(300 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		src := broker.Queue("orders.fifo", sqs.QueueConfig{})
		_, stop := run(t, src, handler, container.Config{})
		wait(1000 * time.Millisecond)
		stop()
		if st := state(t, s, "orders.fifo"); st.Hidden != 0 {
			t.Errorf("%d hidden after Stop", st.Hidden)
		}
		_, stop = run(t, src, handler, container.Config{})
		until(t, 30*time.Second, "all are handled", func() bool { st := state(t, s, "orders.fifo"); return st == sqstest.QueueState{} })
		stop()
		if got := slices.Compact(seen.all()); !slices.Equal(got, numbered(10)) {
			t.Errorf("order %v", got)
		}
	})
}

// F-D06, F-D02: the head's lease is lost while it runs; what follows goes back
// and comes behind it.
func TestLostHeadKeepsTheGroupsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "20"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g", "a1", "a2", "a3")
		remove := s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Entry: func(e sqstest.Entry) string {
			if e.Visibility > 0 {
				return "InternalFailure"
			}
			return ""
		}})
		var done journal
		first := true
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(ctx context.Context, d *longshore.Delivery) error {
			if first {
				first = false
				<-ctx.Done()
				remove()
				return ctx.Err()
			}
			done.add(string(d.Body))
			return nil
		}, container.Config{})
		until(t, 2*time.Minute, "all are handled", func() bool { return done.len() >= 3 })
		wait(30 * time.Second)
		stop()
		if got := strings.Join(done.all(), " "); got != "a1 a2 a3" {
			t.Errorf("handled %s", got)
		}
	})
}

// One receive brings ten of one group; a hundred workers work on a hundred groups
// all the same.
func TestThreeHundredGroupsKeepAHundredWorkersBusy(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		s.Inject(sqstest.Fault{Latency: 5 * time.Millisecond})
		broker := sqs.New(s.Config())
		const groups, each, work = 300, 10, 10 * time.Millisecond
		for g := range groups {
			publish(t, broker, "orders.fifo", fmt.Sprint("g", g), numbered(each)...)
		}
		var mu sync.Mutex
		last, n := map[string]string{}, 0
		// Counted is what lies between the ramp and the tail: there alone is work for all.
		const from, to = groups * each / 10, groups * each * 8 / 10
		var ramped, tail time.Time
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			wait(work)
			mu.Lock()
			defer mu.Unlock()
			if string(d.Body) <= last[string(d.Key)] {
				t.Errorf("group %s: %s came after %s", d.Key, d.Body, last[string(d.Key)])
			}
			last[string(d.Key)] = string(d.Body)
			switch n++; n {
			case from:
				ramped = time.Now()
			case to:
				tail = time.Now()
			}
			return nil
		}, container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		until(t, time.Minute, "all are handled", func() bool { mu.Lock(); defer mu.Unlock(); return n == groups*each })
		parallel := (to - from) * work.Seconds() / tail.Sub(ramped).Seconds()
		t.Logf("%d messages in %s: %.0f at once", to-from, tail.Sub(ramped), parallel)
		if parallel < 70 {
			t.Errorf("%.0f groups at once, want 70 at least", parallel)
		}
		stop()
		if st := state(t, s, "orders.fifo"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// Many groups at once, each in order, whatever fails on the way.
func TestThreeHundredGroupsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		s.Inject(sqstest.Fault{Latency: 2 * time.Millisecond})
		broker := sqs.New(s.Config())
		const groups, each = 300, 10
		p, err := broker.Publisher(sqs.PublisherConfig{})
		must(t, err)
		for i := range each {
			var msgs []*longshore.Message
			for g := range groups {
				msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "g%d", g), Body: fmt.Append(nil, i)})
			}
			must(t, p.Publish(t.Context(), "orders.fifo", msgs...))
		}
		must(t, p.Close(t.Context()))
		var mu sync.Mutex
		next, n, failed := map[string]int{}, 0, 0
		start := time.Now()
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			wait(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if want := fmt.Sprint(next[string(d.Key)]); string(d.Body) != want {
				t.Errorf("group %s: %s came, want %s", d.Key, d.Body, want)
			}
			if n%97 == 0 && failed < 20 {
				failed++
				return errBad
			}
			next[string(d.Key)]++
			n++
			return nil
		}, container.Config{Workers: container.Workers{Min: 100, Max: 100},
			Redelivery: container.Redelivery{MaxAttempts: 50, Backoff: container.Backoff{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond}}})
		until(t, time.Minute, "all are handled", func() bool { mu.Lock(); defer mu.Unlock(); return n == groups*each })
		t.Logf("%d messages of %d groups in %s", groups*each, groups, time.Since(start))
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %s", took)
		}
		stop()
		if st := state(t, s, "orders.fifo"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// A group id on a standard queue makes it fair and is never an order.
func TestGroupOnAStandardQueueIsAKeyAndNoOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "tenant-1", "a", "b")
		if m := s.Messages("orders")[0]; m.Group != "tenant-1" {
			t.Errorf("group %q", m.Group)
		}
		src := broker.Queue("orders", sqs.QueueConfig{})
		if caps := src.Capabilities(); caps.Keyed || caps.Ordering != longshore.OrderNone {
			t.Errorf("%+v", caps)
		}
		c := open(t, src, nil)
		for _, d := range take(t, c, 2) {
			if string(d.Key) != "tenant-1" || d.Origin.GroupID != "tenant-1" {
				t.Errorf("key %q, group %q", d.Key, d.Origin.GroupID)
			}
			must(t, d.Ack(t.Context()))
		}
		must(t, c.Close(t.Context()))
	})
}

// A batch may be one group's run: then what is behind a head is handed out with it.
func TestBatchOfOneGroup(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g", numbered(30)...)
		var seen journal
		largest := 0
		c, err := container.NewBatch(broker.Queue("orders.fifo", sqs.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			largest = max(largest, len(ds))
			for _, d := range ds {
				seen.add(string(d.Body))
			}
			return nil
		}, container.Config{Workers: container.Workers{Max: 1}, Batch: container.Batch{Size: 10, Linger: 100 * time.Millisecond}, Logger: zap.NewNop()})
		must(t, err)
		must(t, c.Start(t.Context()))
		until(t, 30*time.Second, "all are handled", func() bool { return seen.len() == 30 })
		must(t, c.Stop(t.Context()))
		if largest < 10 || !slices.Equal(seen.all(), numbered(30)) {
			t.Errorf("batches of up to %d, order %v", largest, seen.all())
		}
	})
}

// What waits behind a head is ours as long as the head runs, however long that is,
// and another consumer works on other groups meanwhile.
func TestBehindASlowHead(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "20"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "slow", "a1", "a2", "a3")
		publish(t, broker, "orders.fifo", "quick", "b1", "b2")
		var seen journal
		_, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), func(ctx context.Context, d *longshore.Delivery) error {
			if string(d.Body) == "a1" {
				wait(5 * time.Minute)
			}
			if d.Attempt != 1 || ctx.Err() != nil {
				t.Errorf("%s: attempt %d, %v", d.Body, d.Attempt, ctx.Err())
			}
			seen.add(string(d.Body))
			return nil
		}, container.Config{Workers: container.Workers{Min: 2, Max: 2}})
		until(t, 10*time.Minute, "all are handled", func() bool { return seen.len() == 5 })
		stop()
		if got := strings.Join(seen.all(), " "); got != "b1 b2 a1 a2 a3" {
			t.Errorf("handled %s", got)
		}
		if st := state(t, s, "orders.fifo"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// A pause keeps nothing that nobody has begun: groups go to other consumers.
func TestPauseReleasesWhatWaitsBehindHeads(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "600"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders.fifo", "g", numbered(10)...)
		var seen journal
		hold := make(chan struct{})
		handler := func(_ context.Context, d *longshore.Delivery) error {
			if seen.add(string(d.Body)) == 1 && string(d.Body) == numbered(1)[0] {
				<-hold
			}
			return nil
		}
		first, stop := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), handler, container.Config{})
		until(t, 10*time.Second, "the head runs", func() bool { return seen.len() == 1 })
		first.Pause()
		wait(5 * time.Second)
		close(hold)
		_, stopSecond := run(t, broker.Queue("orders.fifo", sqs.QueueConfig{}), handler, container.Config{})
		until(t, time.Minute, "the second has the rest", func() bool { return seen.len() == 10 })
		stop()
		stopSecond()
		if !slices.Equal(seen.all(), numbered(10)) {
			t.Errorf("order %v", seen.all())
		}
	})
}

// F-D06 without a container: a nack takes what waits behind the head back to the
// queue at once, and the group comes again in its order, other groups undisturbed.
func TestNackedHeadTakesItsGroupBack(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders.fifo", map[string]string{"VisibilityTimeout": "600"})
			broker := sqs.New(s.Config())
			publish(t, broker, "orders.fifo", "g1", "a1", "a2", "a3")
			publish(t, broker, "orders.fifo", "g2", "b1", "b2")
			c, err := broker.Queue("orders.fifo", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{Ordered: ordered})
			must(t, err)
			ds := map[string]*longshore.Delivery{}
			receive := func(limit int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got, err := c.Receive(ctx, limit)
				must(t, err)
				for _, d := range got {
					ds[string(d.Body)] = d
				}
			}
			if receive(10); ordered && len(ds) != 2 {
				t.Errorf("%d handed out, want the heads of two groups", len(ds))
			}
			if !ordered {
				for _, body := range []string{"a3", "a2"} { // a container gives them back, the last first
					must(t, ds[body].Nack(t.Context(), 0))
				}
			}
			must(t, ds["a1"].Nack(t.Context(), 0))
			must(t, c.Flush(t.Context()))
			start := time.Now()
			must(t, ds["b1"].Ack(t.Context()))
			var order []string
			for len(order) < 3 {
				ds = map[string]*longshore.Delivery{}
				receive(1)
				for body, d := range ds {
					if body[0] == 'a' {
						order = append(order, body)
					}
					must(t, d.Ack(t.Context()))
				}
			}
			if !slices.Equal(order, []string{"a1", "a2", "a3"}) {
				t.Errorf("ordered %t: came again as %v", ordered, order)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("ordered %t: somebody waited %s for a timeout", ordered, took)
			}
			must(t, c.Close(t.Context()))
		})
	}
}
