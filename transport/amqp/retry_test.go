package amqp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// F-G05: a short delay does not wait behind a long one; there are few delay
// queues, and they would go away by themselves.
func TestShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			t.Run(string(kind), func(t *testing.T) {
				queue := s.declare(t, kind, nil)
				src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
				s.publish(t, queue, "long", "short", "short too")
				c := open(t, src, transport.OpenOptions{})
				for _, d := range c.take(3) {
					delay := 30 * time.Second
					if strings.HasPrefix(string(d.Body), "short") {
						delay = 900 * time.Millisecond
					}
					if err := d.Nack(t.Context(), delay); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				for _, d := range c.take(2) {
					if took := time.Since(start); !strings.HasPrefix(string(d.Body), "short") || took < 800*time.Millisecond || took > 3*time.Second {
						t.Errorf("%s came back after %s", d.Body, took)
					}
					if d.Attempt != 2 || d.Origin.RoutingKey != queue || d.Origin.Exchange != "" || d.Origin.Topic != queue {
						t.Errorf("%s: attempt %d, origin %+v", d.Body, d.Attempt, d.Origin)
					}
					c.ack(d)
				}
				for name, want := range map[string]int{queue + ".30000": 1, queue + ".1000": 0} {
					if n := s.ready(t, "longshore.delay."+name); n != want {
						t.Errorf("delay queue %s holds %d, want %d", name, n, want)
					}
				}
			})
		}
	})
}

// A delayed message keeps everything a handler can see, and its place of origin,
// over several delays; its expiry does not run meanwhile.
func TestDelayedMessageStaysTheSame(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{VirtualClock: true})
	queue := s.declare(t, amqp.Classic, nil)
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		if err := ch.ExchangeDeclare("events", "topic", true, false, false, false, nil); err != nil {
			return err
		}
		return ch.QueueBind(queue, "order.#", "events", false, nil)
	})
	b := amqp.New(s.url, amqp.Config{})
	m := &longshore.Message{ID: "id", Key: []byte{0, 1}, Type: "t", CorrelationID: "c", ReplyTo: "r", AppID: "a", UserID: "somebody",
		ContentType: "x/y", ContentEncoding: "z", Timestamp: time.Unix(1e9, 123456789), Expiration: 5 * time.Second, Priority: 3,
		Headers: longshore.Headers{{Name: "b", Value: "2"}, {Name: "a", Value: int32(1)}, {Name: "b", Value: nil}, {Name: "CC", Value: []any{"x"}}}}
	if err := publish(publisher(t, b, amqp.PublisherConfig{}), amqp.To("events", "order.paid"), m); err != nil {
		t.Fatal(err)
	}
	c := open(t, b.Queue(queue, amqp.QueueConfig{Key: amqp.RoutingKey}), transport.OpenOptions{})
	first := c.take(1)[0]
	if got := fmt.Sprint(first.Headers); got != "[{b 2} {a 1} {b <nil>} {CC [x]}]" || first.Body != nil || !first.Timestamp.Equal(m.Timestamp) {
		t.Errorf("first received as %s, %+v", got, first.Message)
	}
	d := first
	for attempt := 2; attempt <= 4; attempt++ {
		if err := d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Delay: 90 * time.Second, Attempt: attempt}); err != nil {
			t.Fatal(err)
		}
		s.embedded.Advance(80 * time.Second)
		if n := buffered(t, c.Consumer); n != 0 {
			t.Fatalf("came back before its time")
		}
		s.embedded.Advance(20 * time.Second) // 90 s rounded up by 5 % at the most
		d = c.take(1)[0]
		if d.Attempt != attempt {
			t.Errorf("attempt %d, want %d", d.Attempt, attempt)
		}
		if !sameButDeath(d, first) {
			t.Errorf("after the delay:\n%+v\nbefore:\n%+v", d.Message, first.Message)
		}
		if d.Origin.Exchange != "events" || d.Origin.RoutingKey != "order.paid" || d.Expiration != m.Expiration || d.UserID != m.UserID || d.Body != nil {
			t.Errorf("after the delay: %+v from %+v", d.Message, d.Origin)
		}
	}
	c.ack(d)
}

// sameButDeath compares what the handler sees, but for what the broker adds.
func sameButDeath(a, b *longshore.Delivery) bool {
	clean := func(m longshore.Message) string {
		c := m.Clone()
		for _, h := range m.Headers {
			if strings.HasPrefix(h.Name, "x-death") || strings.HasPrefix(h.Name, "x-first-death") || strings.HasPrefix(h.Name, "x-last-death") {
				c.Headers.Del(h.Name)
			}
		}
		return fmt.Sprintf("%+v", *c)
	}
	return clean(a.Message) == clean(b.Message)
}

// A delay that cannot be published leaves the delivery open.
func TestDelayThatCannotBePublished(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
	s.publish(t, queue, "a")
	d := c.take(1)[0]
	s.proxy.Refuse() // the publishing connection is not open yet
	err := d.Nack(t.Context(), time.Second)
	wants(t, "Nack with nobody there", err, longshore.CodeUnreachable, queue)
	if !d.Owned() {
		t.Fatal("the delivery is settled although its copy was not published")
	}
	wants(t, "Nack beyond the longest delay", d.Nack(t.Context(), 60*24*time.Hour), longshore.CodeUnsupported)
	if err := s.proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Nack works again", func() bool { return d.Nack(t.Context(), time.Second) == nil })
	if d = c.take(1)[0]; d.Attempt != 2 {
		t.Errorf("attempt %d", d.Attempt)
	}
	c.ack(d)
}

// F-G01 a: failures are counted one by one and one record at a time, beyond the queue's
// own limit too; its neighbours are not touched.
func TestFailuresDoNotUseUpTheDeliveryLimit(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		args := amqp091.Table{"x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
		queue := s.declare(t, amqp.Quorum, args)
		s.declareNamed(t, "dead", amqp.Classic, nil)
		s.publish(t, queue, append(numbered(20), "poison")...)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: args}})
		c := open(t, src, transport.OpenOptions{Window: 21, MaxWindow: 21})
		ds := c.take(21)
		d := ds[20]
		for attempt := 1; attempt <= 6; attempt++ {
			if d.Attempt != attempt || string(d.Body) != "poison" {
				t.Fatalf("attempt %d of %s, want %d", d.Attempt, d.Body, attempt)
			}
			if err := d.Nack(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			d = c.take(1)[0]
		}
		if err := d.Reject(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		c.ack(ds[:20]...)
		c.must("Flush", c.Flush)
		eventually(t, "the poison is dead-lettered", func() bool { return s.ready(t, "dead") == 1 })
		if got := s.left(t, "dead"); len(got) != 1 || got[0] != "poison" {
			t.Errorf("dead-lettered: %v", got)
		}
	})
}

// F-G01 b, c: orderly restarts dead-letter and lose nothing. What was received is
// worked off; on 4.3, where a nack does not count, it may as well go back.
func TestOrderlyRestartsLoseNothing(t *testing.T) {
	for _, like := range []struct {
		flavor   amqptest.Flavor
		release  bool
		restarts int
	}{{amqptest.V3_10, false, 6}, {amqptest.V4_0, false, 30}, {amqptest.V4_3, true, 30}} {
		t.Run(like.flavor.String(), func(t *testing.T) {
			s := embeddedSite(t, amqptest.Config{Flavor: like.flavor})
			args := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-delivery-limit": 3}
			queue := s.declare(t, amqp.Quorum, args)
			s.declareNamed(t, "dead", amqp.Classic, nil)
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: args}})
			s.publish(t, queue, numbered(100)...)
			worked := 0
			for range like.restarts {
				c := open(t, src, transport.OpenOptions{Window: 20, MaxWindow: 20})
				if counts := as[transport.CapabilityReporter](t, c.Consumer).Capabilities().CountsReturns; counts == like.release {
					t.Fatalf("CountsReturns is %v", counts)
				}
				if n := min(1, 100-worked); n > 0 {
					c.ack(c.take(n)...)
					worked += n
				}
				c.must("Cancel", c.Cancel)
				if like.release {
					c.must("Release", c.Release)
				}
				for {
					ds, err := c.Receive(context.Background(), 10)
					if err != nil {
						wants(t, "Receive", err, longshore.ErrCanceled)
						break
					}
					c.ack(ds...)
					worked += len(ds)
				}
				c.must("Flush", c.Flush)
				c.close()
			}
			if dead, left := s.ready(t, "dead"), s.ready(t, queue); dead != 0 || worked+left != 100 {
				t.Errorf("%d worked, %d left, %d dead; want 100 in the first two", worked, left, dead)
			}
		})
	}
}
