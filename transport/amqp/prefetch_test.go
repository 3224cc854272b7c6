package amqp_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// unacked is what the broker counts as out.
func unacked(s *site, queue string) int {
	q, _ := s.embedded.Queue("/", queue)
	return q.Unacked
}

// F-E05: the window changes under blocked handlers: what is out never exceeds the
// larger of the new window and what was out, and it converges.
func TestWindowFollowsResize(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(1000)...)
		acked := 0
		out := func() int { return 1000 - acked - s.ready(t, queue) }
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 10, MaxWindow: 100})
		resize := func(n int) {
			c.must("Resize", func(ctx context.Context) error { return as[transport.Resizer](t, c.Consumer).Resize(ctx, n) })
		}
		held := c.take(16) // the smallest window
		still(t, 200*time.Millisecond, "16 are out", func() bool { return out() == 16 })
		resize(100)
		held = append(held, c.take(84)...)
		still(t, 200*time.Millisecond, "100 are out", func() bool { return out() == 100 })
		resize(5) // what is out stays out
		still(t, 200*time.Millisecond, "100 are still out, and no more", func() bool { return out() == 100 })
		resize(0) // nothing more
		c.ack(held...)
		c.must("Flush", c.Flush)
		acked = len(held)
		eventually(t, "none is out", func() bool { return out() == 0 })
		still(t, 200*time.Millisecond, "none is out", func() bool { return out() == 0 })
		resize(5)
		eventually(t, "16 are out", func() bool { return out() == 16 })
		still(t, 200*time.Millisecond, "no more", func() bool { return out() <= 16 })
		if s.embedded == nil {
			return
		}
		if q, _ := s.embedded.Queue("/", queue); len(q.Consumers) != 1 {
			t.Errorf("%d consumers for a window of 16", len(q.Consumers))
		}
	})
}

// A window that only creeps up takes few consumers.
func TestCreepingWindowTakesFewConsumers(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 1, MaxWindow: 512})
	for n := 1; n <= 512; n++ {
		c.must("Resize", func(ctx context.Context) error { return as[transport.Resizer](t, c.Consumer).Resize(ctx, n) })
	}
	if q, _ := s.embedded.Queue("/", queue); len(q.Consumers) > 6 {
		t.Errorf("%d consumers for a window of 512", len(q.Consumers))
	}
}

// F-E06: nothing is configured and the queue is long. What is out is bounded by
// the documented default, and a second instance gets its share.
func TestNeverUnlimitedByAccident(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		const n = 3000
		s.publish(t, queue, numbered(n)...)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
		one := open(t, src, transport.OpenOptions{})
		eventually(t, "250 are with the first", func() bool { return s.ready(t, queue) == n-250 })
		still(t, 300*time.Millisecond, "no more", func() bool { return s.ready(t, queue) == n-250 })
		two := open(t, src, transport.OpenOptions{})
		eventually(t, "250 are with the second", func() bool { return s.ready(t, queue) == n-500 })
		eventually(t, "each holds 250", func() bool {
			return buffered(t, one.Consumer) == 250 && buffered(t, two.Consumer) == 250
		})
		_, err := tryOpen(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Prefetch: 20}), transport.OpenOptions{Window: 20, MaxWindow: 60})
		wants(t, "a prefetch that starves the workers", err, longshore.CodeWindow, "Prefetch is 20", "at least 60")
	})
}

// F-E04: more workers than the prefetch feeds are asked for while it runs. It goes on
// with what it has, over a reopening too.
func TestMoreWorkersThanThePrefetchFeeds(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Prefetch: 20})
	one := open(t, src, transport.OpenOptions{Window: 20, MaxWindow: 20})
	s.proxy.CutAll()
	eventually(t, "Observer.Down", func() bool { return one.down() != nil })
	again := open(t, src, transport.OpenOptions{Window: 60, MaxWindow: 60})
	s.publish(t, queue, "a")
	again.ack(again.take(1)...)
}

// F-A06: intake stops and starts and shrinks and grows under load: each message
// is settled once or is back, in the order of the queue.
func TestStopsAndStartsUnderLoad(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		cycles, n := 30, 3000
		queue := s.declare(t, amqp.Classic, nil)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
		all := numbered(n)
		var load sync.WaitGroup
		load.Go(func() {
			for chunk := range slices.Chunk(all, 100) {
				s.publish(t, queue, chunk...)
			}
		})
		var settled []string
		for cycle := range cycles {
			c := open(t, src, transport.OpenOptions{Window: 16, MaxWindow: 64})
			last := ""
			work := func(ds []*longshore.Delivery) {
				for _, d := range ds {
					if string(d.Body) <= last {
						t.Errorf("cycle %d: %s came after %s", cycle, d.Body, last)
					}
					last = string(d.Body)
					settled = append(settled, last)
				}
				c.ack(ds...)
			}
			work(c.take(10))
			c.must("Resize", func(ctx context.Context) error { return as[transport.Resizer](t, c.Consumer).Resize(ctx, 64) })
			work(c.take(20))
			c.must("Resize", func(ctx context.Context) error { return as[transport.Resizer](t, c.Consumer).Resize(ctx, 16) })
			c.must("Cancel", c.Cancel)
			if cycle%2 == 0 {
				c.must("Release", c.Release)
			}
			for {
				ds, err := c.Receive(context.Background(), 7)
				if err != nil {
					wants(t, "Receive", err, longshore.ErrCanceled)
					break
				}
				work(ds)
			}
			c.must("Flush", c.Flush)
			c.close()
			if _, failed, downs := c.counts(); failed+downs > 0 {
				t.Fatalf("cycle %d: %d settlements failed, down %d times: %v", cycle, failed, downs, c.down())
			}
			if len(settled)+100 > n {
				break
			}
		}
		load.Wait()
		got := append(settled, s.left(t, queue)...)
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("settled and left are %d messages, %d different, want %d each once", len(got), len(slices.Compact(slices.Clone(got))), n)
		}
	})
}

// Consumers that come after others were cancelled have tags of their own: under a
// tag that still has unsettled deliveries a quorum queue of RabbitMQ 3.10 mixes the
// two up, and the connection ends with an internal error.
func TestResumeWithUnsettledDeliveries(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Quorum, nil)
		const rounds = 20
		s.publish(t, queue, numbered(rounds)...)
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Prefetch: rounds}), transport.OpenOptions{})
		held := c.take(rounds)
		for n := range rounds {
			c.must("Pause", as[transport.Pauser](t, c.Consumer).Pause)
			c.must("Resume", as[transport.Pauser](t, c.Consumer).Resume)
			c.ack(held[n])
			s.publish(t, queue, "more")
			c.ack(c.take(1)...)
			c.must("Flush", c.Flush)
			if err := c.down(); err != nil {
				t.Fatalf("round %d: down: %v", n, err)
			}
		}
		if lost, failed, _ := c.counts(); lost != 0 || failed != 0 {
			t.Errorf("%d lost, %d settlements failed", lost, failed)
		}
	})
}
