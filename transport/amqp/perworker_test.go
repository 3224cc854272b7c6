package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// threeWorkers opens a source as a container with three workers does.
type threeWorkers struct{ *amqp.Queue }

func (q threeWorkers) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	o.Workers, o.MaxWorkers = 3, 3
	return q.Queue.Open(ctx, o)
}

// Three consumers behind one keep every promise of a transport.
func TestConformanceOfPerWorker(t *testing.T) {
	run := func(t *testing.T, l *lab) {
		l.wrap = func(q *amqp.Queue) transport.Source { return threeWorkers{q} }
		each := func(t testing.TB, change func(*amqp.QueueConfig)) transport.Source {
			return l.source(t, func(c *amqp.QueueConfig) {
				if c.Consumers = amqp.PerWorker; change != nil {
					change(c)
				}
			})
		}
		h := l.harness()
		h.Source = func(t testing.TB) transport.Source { return each(t, nil) }
		h.Batched = func(t testing.TB) transport.Source {
			return each(t, func(c *amqp.QueueConfig) { c.SettleLinger = time.Hour })
		}
		h.Windowed = func(t testing.TB) (transport.Source, int) {
			return each(t, func(c *amqp.QueueConfig) { c.Prefetch = 5 }), 15
		}
		transporttest.Run(t, h)
	}
	t.Run("embedded", func(t *testing.T) { run(t, embedded(amqptest.V3_10, amqp.Classic)) })
	t.Run("rabbitmq", func(t *testing.T) {
		brokertest.AMQP(t)
		run(t, real(amqp.Quorum))
	})
}

// consumersOf is how many consumers the broker counts on a queue.
func consumersOf(t *testing.T, s *site, queue string) (n int) {
	t.Helper()
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		n = q.Consumers
		return err
	})
	return n
}

// consumerChanges are the lines about consumers.
type consumerChanges struct {
	mu    sync.Mutex
	added []string
	gone  []string
}

func (c *consumerChanges) note(e container.Event) {
	if e.Kind != container.EventConsumer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(e.Text, " added: ") {
		c.added = append(c.added, e.Text)
	} else {
		c.gone = append(c.gone, e.Text)
	}
}

func (c *consumerChanges) counts() (added, gone int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.added), len(c.gone)
}

// A consumer per worker, with a prefetch of 1 each: under load the broker counts as many
// consumers as the container has workers, 30 of 3, and 3 again when the load is over. Every
// step has its line, and every message is handled once.
func TestConsumerPerWorkerFollowsTheWorkers(t *testing.T) {
	t.Parallel() // it mostly waits
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		const n = 600
		s.publish(t, queue, numbered(n)...)
		changes := &consumerChanges{}
		var mu sync.Mutex
		handled := map[string]int{}
		cfg := amqp.Config{}
		if s.embedded == nil {
			cfg.Management = brokertest.Management(t, s.direct)
		}
		src := amqp.New(s.url, cfg).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker, Prefetch: 1, Tag: "orders"})
		c, err := container.New(src, longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			<-time.After(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			handled[string(d.Body)]++
			return nil
		}), container.Config{Workers: container.Workers{Min: 3, Max: 30}, Logger: zap.NewNop(), OnEvent: changes.note})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		scale := func(n int) {
			if err := c.Scale(n, n); err != nil {
				t.Fatal(err)
			}
			eventually(t, fmt.Sprintf("%d consumers for %d workers", n, n), func() bool {
				return consumersOf(t, s, queue) == n && c.Stats().Workers == n
			})
		}
		scale(30)
		if s.embedded == nil {
			eventuallyWithin(t, 15*time.Second, "RabbitMQ lists 30 consumers with a prefetch of 1, each with a tag of its own", func() bool {
				list, err := src.Consumers(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var tags []string
				for _, l := range list.Consumers {
					if l.Prefetch == 1 {
						tags = append(tags, l.ID)
					}
				}
				slices.Sort(tags)
				return len(slices.Compact(tags)) == 30 && strings.HasPrefix(tags[0], "orders")
			})
		}
		scale(3)
		eventuallyWithin(t, 30*time.Second, "all are handled", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(handled) == n
		})
		scale(5)
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for body, times := range handled {
			if times != 1 {
				t.Errorf("%s was handled %d times", body, times)
			}
		}
		if added, gone := changes.counts(); added != 32 || gone != 27 {
			t.Errorf("%d lines about new consumers and %d about cancelled ones, want 32 and 27", added, gone)
		}
		if left := consumersOf(t, s, queue); left != 0 || s.ready(t, queue) != 0 {
			t.Errorf("%d consumers and %d messages are left", left, s.ready(t, queue))
		}
	})
}

// follow changes the number of workers.
func (s *sub) follow(n int) {
	s.t.Helper()
	s.must("FollowWorkers", func(ctx context.Context) error {
		return as[transport.WorkerFollower](s.t, s.Consumer).FollowWorkers(ctx, n)
	})
}

// What a cancelled consumer has in its buffer is handled, before what the others have; what
// is not wanted any more goes back to its place in the queue.
func TestCancelledConsumersBufferIsHandledOrReturned(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(40)...)
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker, Prefetch: 4}), transport.OpenOptions{Workers: 5})
		eventually(t, "20 are out to 5 consumers", func() bool { return s.ready(t, queue) == 20 && consumersOf(t, s, queue) == 5 })
		c.follow(1)
		if n := consumersOf(t, s, queue); n != 1 {
			t.Errorf("%d consumers for one worker", n)
		}
		if n := s.ready(t, queue); n != 20 {
			t.Errorf("%d messages are ready: cancelling has given some back", n)
		}
		first := c.take(16) // of the four that were cancelled
		c.ack(first...)
		c.must("Flush", c.Flush)
		still(t, 100*time.Millisecond, "the one that is left takes no more", func() bool { return s.ready(t, queue) == 20 })
		c.ack(c.take(4)...)
		eventually(t, "and then it does", func() bool { return s.ready(t, queue) == 16 })
		c.follow(3)
		eventually(t, "12 are out", func() bool { return s.ready(t, queue) == 8 })
		c.must("Cancel", c.Cancel)
		c.must("Release", c.Release)
		if _, err := c.Receive(t.Context(), 1); !errors.Is(err, longshore.ErrCanceled) {
			t.Errorf("Receive after Release: %v", err)
		}
		c.must("Close", c.Close)
		eventually(t, "20 are in the queue again", func() bool { return s.ready(t, queue) == 20 })
		if got := s.inOrder(t, queue); !slices.IsSorted(got) || len(got) != 20 {
			t.Errorf("the queue is out of order: %v", got)
		}
	})
}

// inOrder returns the bodies of what a queue holds, in its order, and takes them away.
func (s *site) inOrder(t *testing.T, queue string) (bodies []string) {
	t.Helper()
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		for {
			d, ok, err := ch.Get(queue, true)
			if err != nil || !ok {
				return err
			}
			bodies = append(bodies, string(d.Body))
		}
	})
	return bodies
}

// A message that is not acknowledged in time costs its own consumer, which is replaced; the
// others keep their messages.
func TestAckTimeoutCostsOneConsumer(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{ConsumerTimeout: time.Second})
	queue := s.declare(t, amqp.Quorum, nil)
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker, Prefetch: 1})
	c := open(t, src, transport.OpenOptions{Workers: 1})
	s.embedded.SetConsumerTimeout(time.Hour) // for channels opened from now on
	c.follow(3)
	s.publish(t, queue, "a", "b", "c")
	held := c.take(3)
	eventually(t, "one delivery is lost", func() bool { lost, _, _ := c.counts(); return lost == 1 })
	again := c.take(1)[0]
	if again.Attempt < 2 && !again.Origin.Redelivered {
		t.Errorf("%q came again as new", again.Body)
	}
	for _, d := range held {
		if err := d.Ack(t.Context()); string(d.Body) == string(again.Body) != errors.Is(err, longshore.ErrLost) {
			t.Errorf("ack of %s: %v", d.Body, err)
		}
	}
	c.ack(again)
	c.must("Flush", c.Flush)
	if _, failed, downs := c.counts(); failed != 0 || downs != 0 {
		t.Errorf("%d settlements failed, down %v", failed, c.down())
	}
	eventually(t, "there are three again", func() bool { return consumersOf(t, s, queue) == 3 })
}

// A connection that ends loses what all of them have, and the container hears once that they
// are down.
func TestLostConnectionEndsAllConsumers(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(9)...)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker, Prefetch: 3})
		c := open(t, src, transport.OpenOptions{Workers: 3})
		held := c.take(9)
		s.proxy.CutAll()
		eventually(t, "Observer.Down", func() bool { return c.down() != nil })
		if lost, _, downs := c.counts(); lost != 9 || downs != 1 {
			t.Errorf("%d lost, %d times down", lost, downs)
		}
		for _, d := range held {
			wants(t, "late ack", d.Ack(t.Context()), longshore.ErrLost)
		}
		if _, err := c.Receive(t.Context(), 1); !errors.Is(err, longshore.CodeConnLost) {
			t.Errorf("Receive: %v", err)
		}
		again := reopen(t, src, transport.OpenOptions{Workers: 3})
		again.ack(again.take(9)...)
	})
}

// A connection has only so many channels: more workers share those.
func TestConsumersWithinTheConnectionsChannels(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{ChannelMax: 24})
	queue := s.declare(t, amqp.Classic, nil)
	c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker}), transport.OpenOptions{Workers: 3})
	c.follow(30)
	if n := consumersOf(t, s, queue); n != 8 {
		t.Errorf("%d consumers on a connection of 24 channels, want 8", n)
	}
	c.follow(2)
	if n := consumersOf(t, s, queue); n != 2 {
		t.Errorf("%d consumers for 2 workers", n)
	}
}

// Fewer channels than are kept spare leave one consumer, not none.
func TestConsumerOfANarrowConnection(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{ChannelMax: 10})
	queue := s.declare(t, amqp.Classic, nil)
	c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Consumers: amqp.PerWorker}), transport.OpenOptions{Workers: 3})
	c.follow(5)
	if n := consumersOf(t, s, queue); n != 1 {
		t.Errorf("%d consumers on a connection of 10 channels, want 1", n)
	}
	s.publish(t, queue, "x")
	c.ack(c.take(1)...)
}

// What does not go with several consumers is refused before anything is connected.
func TestPerWorkerRefusals(t *testing.T) {
	b := amqp.New("amqp://localhost/", amqp.Config{})
	per := func(change func(*amqp.QueueConfig)) *amqp.Queue {
		cfg := amqp.QueueConfig{Consumers: amqp.PerWorker}
		change(&cfg)
		return b.Queue("orders", cfg)
	}
	for name, c := range map[string]struct {
		change func(*amqp.QueueConfig)
		words  []string
	}{
		"alone":         {func(*amqp.QueueConfig) {}, nil},
		"priority":      {func(c *amqp.QueueConfig) { c.Priority = 3 }, nil},
		"auto-ack":      {func(c *amqp.QueueConfig) { c.AutoAck = true }, nil},
		"exclusive":     {func(c *amqp.QueueConfig) { c.Exclusive = true }, []string{"Exclusive", "Consumers per worker"}},
		"single active": {func(c *amqp.QueueConfig) { c.SingleActive = true }, []string{"SingleActive", "Consumers per worker"}},
		"pull":          {func(c *amqp.QueueConfig) { c.Pull = true }, []string{"Pull", "Consumers per worker"}},
		"unlimited":     {func(c *amqp.QueueConfig) { c.Prefetch = amqp.Unlimited }, []string{"Prefetch", "Consumers per worker"}},
		"stream":        {func(c *amqp.QueueConfig) { c.Arguments = amqp091.Table{"x-stream-offset": "first"} }, []string{"x-stream-offset", "Consumers per worker"}},
	} {
		refuses(t, name, per(c.change).Check(), c.words...)
	}
	src := per(func(c *amqp.QueueConfig) { c.Prefetch = 1 })
	refuses(t, "30 workers with a prefetch of 1", src.ValidateOpen(transport.OpenOptions{MaxWorkers: 30, MaxWindow: 60}))
	refuses(t, "order by key", src.ValidateOpen(transport.OpenOptions{Ordered: true}), "Consumers per worker", "one channel keeps the order")
	refuses(t, "3000 workers", src.ValidateOpen(transport.OpenOptions{MaxWorkers: 3000}), "Workers.Max 3000", "2047", "2031")
	wants(t, "batches", src.ValidateOpen(transport.OpenOptions{Batch: 50}), longshore.CodeWindow, "batch of 50")
}
