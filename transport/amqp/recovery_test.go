package amqp_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// F-B01: the link breaks in each step of opening. The attempt fails as a whole,
// and the next one is complete: topology, and one consumer of each queue.
func TestLinkBreaksInEveryStepOfOpening(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for n := 1; n <= 8; n++ {
			for _, forward := range []bool{false, true} {
				t.Run(fmt.Sprintf("method %d, forwarded %v", n, forward), func(t *testing.T) {
					name := fmt.Sprintf("steps-%d-%v", n, forward)
					src := amqp.New(s.url, amqp.Config{}).Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic,
						Bindings: []amqp.Binding{{Exchange: "ex-" + name, Kind: amqp.Topic, Key: "a.#"}, {Exchange: "ex-" + name, Kind: amqp.Topic, Key: "b"}}}})
					s.proxy.CutAtMethod(faultproxy.MethodCut{N: n, Forward: forward, Connections: 1})
					cut := s.proxy.Cuts()
					c, err := tryOpen(t, src, transport.OpenOptions{Window: 4, MaxWindow: 4})
					if err == nil { // opening has fewer steps, or the last answer came before the cut
						eventually(t, "the cut is noticed", func() bool { return c.down() != nil || s.proxy.Cuts() == cut })
					} else if code := longshore.CodeOf(err); code != longshore.CodeConnLost && code != longshore.CodeUnreachable {
						t.Errorf("the attempt failed with %q: %v", code, err)
					}
					s.proxy.CutAtMethod(faultproxy.MethodCut{})
					if c == nil || c.down() != nil {
						c = reopen(t, src, transport.OpenOptions{Window: 4, MaxWindow: 4})
					}
					p := publisher(t, amqp.New(s.direct, amqp.Config{}), amqp.PublisherConfig{})
					for _, dest := range []string{name, amqp.To("ex-"+name, "a.x"), amqp.To("ex-"+name, "b")} {
						if err := publish(p, dest, &longshore.Message{Body: []byte(dest)}); err != nil {
							t.Errorf("publish to %s: %v", dest, err)
						}
					}
					c.ack(c.take(3)...)
					if s.embedded != nil {
						q, _ := s.embedded.Queue("/", name)
						if len(q.Consumers) != 1 {
							t.Errorf("%d consumers on the queue, want 1", len(q.Consumers))
						}
					}
				})
			}
		}
	})
}

// F-B02: nobody is there. Open says so with a type and the source's name, and
// works when the broker has appeared.
func TestBrokerIsDownAtFirst(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
		s.proxy.Refuse()
		for range 3 {
			_, err := tryOpen(t, src, transport.OpenOptions{})
			wants(t, "Open with nobody there", err, longshore.CodeUnreachable, queue, s.proxy.Addr(), "refused")
		}
		if err := s.proxy.Listen(); err != nil {
			t.Fatal(err)
		}
		c := open(t, src, transport.OpenOptions{})
		s.publish(t, queue, "a")
		c.ack(c.take(1)...)
	})
}

// F-B03: the broker waits too long for an ack. It is noticed without anybody in
// Receive, handlers hear of it, nothing is sent for them any more, and others on
// the connection go on.
func TestBrokerTakesADeliveryBack(t *testing.T) {
	for _, like := range []struct {
		flavor amqptest.Flavor
		kind   amqp.QueueType
	}{{amqptest.V3_10, amqp.Classic}, {amqptest.V3_10, amqp.Quorum}, {amqptest.V4_3, amqp.Quorum}} {
		t.Run("embedded "+like.flavor.String()+" "+string(like.kind), func(t *testing.T) {
			s := embeddedSite(t, amqptest.Config{Flavor: like.flavor})
			s.embedded.SetConsumerTimeout(300 * time.Millisecond)
			takenBack(t, s, like.kind, func() { s.embedded.SetConsumerTimeout(time.Hour) })
		})
	}
	t.Run("rabbitmq", func(t *testing.T) {
		brokertest.AMQP(t)
		node := brokertest.FaultNode(t)
		node.ConsumerTimeout(2 * time.Second)
		p, through := proxied(t, node.URL)
		takenBack(t, &site{direct: node.URL, url: through, proxy: p}, amqp.Quorum, func() { node.Eval("application:set_env(rabbit, consumer_timeout, 3600000).") })
	})
}

func takenBack(t *testing.T, s *site, kind amqp.QueueType, normal func()) {
	queue, other := s.declare(t, kind, nil), s.declare(t, amqp.Classic, nil)
	b := amqp.New(s.url, amqp.Config{})
	src := b.Queue(queue, amqp.QueueConfig{})
	c := open(t, src, transport.OpenOptions{})
	normal() // for channels opened from now on
	neighbour := open(t, b.Queue(other, amqp.QueueConfig{}), transport.OpenOptions{})
	s.publish(t, queue, "slow", "waits")
	d := c.take(1)[0]
	ctx := d.Context()
	eventually(t, "Observer.Down", func() bool {
		s.publish(t, other, "x")
		neighbour.ack(neighbour.take(1)...)
		return c.down() != nil
	})
	wants(t, "Down", c.down(), longshore.CodeAckTimeout, queue, "consumer-timeout")
	if ctx.Err() == nil || context.Cause(ctx) == nil {
		t.Error("the handler's context lives")
	}
	wants(t, "cause of the handler's context", context.Cause(ctx), longshore.ErrLost)
	wants(t, "late ack", d.Ack(context.Background()), longshore.ErrLost)
	if lost, failed, downs := c.counts(); lost != 1 || failed != 0 || downs != 1 {
		t.Errorf("lost %d, failed %d, downs %d; want 1, 0, 1", lost, failed, downs)
	}
	if neighbour.down() != nil {
		t.Errorf("the neighbour is down: %v", neighbour.down())
	}
	c.close()
	again := open(t, src, transport.OpenOptions{})
	if lease := as[transport.CapabilityReporter](t, again.Consumer).Capabilities().Lease; lease <= 0 || lease > time.Minute {
		t.Errorf("the next subscription takes the broker's patience for %s", lease)
	}
	for _, d := range again.take(2) { // F-N15: one was in no handler's hands
		if d.Attempt != 1 {
			t.Errorf("%s: attempt %d after it was taken back", d.Body, d.Attempt)
		}
		again.ack(d)
	}
}

// F-B04: 20 handlers are at work when the link drops. Their settlements reach
// nothing of the new channel, where the same tags mean other messages.
func TestSettlementBelongsToItsChannel(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			t.Run(string(kind), func(t *testing.T) {
				queue := s.declare(t, kind, nil)
				src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
				s.publish(t, queue, numbered(20)...)
				old := open(t, src, transport.OpenOptions{Window: 20, MaxWindow: 20})
				stale := old.take(20)
				s.proxy.CutAll()
				eventually(t, "Observer.Down", func() bool { return old.down() != nil })
				wants(t, "Down", old.down(), longshore.CodeConnLost)
				old.close()
				fresh := reopen(t, src, transport.OpenOptions{Window: 40, MaxWindow: 40})
				again := fresh.take(20)
				refused := 0
				for i, d := range stale {
					var err error
					switch i % 3 {
					case 0:
						err = d.Ack(context.Background())
					case 1:
						err = d.Nack(context.Background(), 0)
					case 2:
						err = d.Nack(context.Background(), time.Second)
					}
					if err != nil {
						wants(t, "stale settlement", err, longshore.ErrLost)
						refused++
					}
				}
				fresh.must("Flush", fresh.Flush)
				if lost, _, _ := old.counts(); refused != 20 || lost != 20 {
					t.Errorf("%d of 20 stale settlements refused, %d reported lost", refused, lost)
				}
				fresh.ack(again[:10]...)
				fresh.must("Flush", fresh.Flush)
				if err := fresh.down(); err != nil {
					t.Fatalf("the new channel ended: %v", err)
				}
				fresh.close()
				if got := s.left(t, queue); len(got) != 10 {
					t.Errorf("%d messages are left of 20, 10 were acked: %v", len(got), got)
				}
			})
		}
	})
}

// Acks that were accepted or written but not confirmed when the link was reset
// are all reported: what comes back is a subset of the report. F-B04
func TestUnconfirmedAcksAreReported(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Prefetch: 2000})
		s.publish(t, queue, numbered(2000)...)
		c := open(t, src, transport.OpenOptions{})
		c.ack(c.take(2000)...)
		s.proxy.ResetAll()
		eventually(t, "Observer.Down", func() bool { return c.down() != nil })
		_, failed, _ := c.counts()
		eventually(t, "the queue is settled", func() bool { n := s.ready(t, queue); return n <= failed })
		ctx, cancel := within(patience)
		defer cancel()
		if err := c.Flush(ctx); failed > 0 {
			wants(t, "Flush", err, longshore.CodeSettle)
		}
		t.Logf("2000 acked, %d not confirmed, %d came back", failed, s.ready(t, queue))
	})
}

// F-L01: open, consume, be cut, open again, stop, many times, and openings that
// fail: goroutines and connections are back at the baseline.
func TestNothingSurvivesClose(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	b := amqp.New(s.url, amqp.Config{})
	cycle := func() {
		s.publish(t, queue, numbered(10)...)
		c := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 20, MaxWindow: 20})
		ds := c.take(10)
		c.ack(ds[:5]...)
		if err := ds[5].Nack(t.Context(), 0); err != nil {
			t.Error(err)
		}
		s.proxy.CutAll()
		eventually(t, "Observer.Down", func() bool { return c.down() != nil })
		c.close()
		c = reopen(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		if err := c.take(1)[0].Nack(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		c.close()
		_, err := tryOpen(t, b.Queue("missing", amqp.QueueConfig{}), transport.OpenOptions{})
		wants(t, "missing queue", err, longshore.CodeNotFound)
		s.left(t, queue)
	}
	cycle()
	eventually(t, "no connection is left", func() bool { return len(s.embedded.Connections()) == 0 })
	before := runtime.NumGoroutine()
	for range 40 {
		cycle()
	}
	eventually(t, "no connection is left", func() bool { return len(s.embedded.Connections()) == 0 })
	eventually(t, "goroutines are back at the baseline", func() bool { return runtime.NumGoroutine() <= before })
}

// F-B06: the broker forgets a consumer without a word, and the connection is in
// perfect health.
func TestConsumerIsForgotten(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 2} { // consumers that the queue has now
		t.Run(fmt.Sprintf("%d others", more), func(t *testing.T) {
			t.Parallel()
			s := embeddedSite(t, amqptest.Config{})
			queue := s.declare(t, amqp.Quorum, nil)
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
			c := open(t, src, transport.OpenOptions{})
			s.publish(t, queue, "before")
			c.ack(c.take(1)...)
			s.embedded.ForgetConsumers("/", queue)
			s.publish(t, queue, "after")
			for range more {
				s.fullConsumer(t, queue)
			}
			eventuallyWithin(t, time.Minute, "Observer.Down", func() bool { return c.down() != nil })
			wants(t, "Down", c.down(), longshore.CodeCanceledBy, queue)
		})
	}
}
