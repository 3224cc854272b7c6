package amqp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// F-K05: what exists is different. Queue, argument, wanted and found are named;
// others on the connection are undisturbed; passive mode consumes.
func TestExistingTopologyDiffers(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		b := amqp.New(s.url, amqp.Config{})
		other := s.declare(t, amqp.Classic, nil)
		neighbour := open(t, b.Queue(other, amqp.QueueConfig{}), transport.OpenOptions{})
		for what, c := range map[string]struct {
			there      amqp091.Table
			here       amqp.QueueConfig
			argument   string
			want, have string
		}{
			"type":          {nil, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}, "x-queue-type", `"quorum"`, `"classic"`},
			"durability":    {nil, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, Transient: true}}, "durable", `"false"`, `"true"`},
			"auto-delete":   {nil, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, AutoDelete: true}}, "auto_delete", `"true"`, `"false"`},
			"TTL":           {amqp091.Table{"x-message-ttl": 5000}, declares("x-message-ttl", 6000), "x-message-ttl", `"6000"`, `"5000"`},
			"no TTL there":  {nil, declares("x-message-ttl", 6000), "x-message-ttl", `"6000"`, "none"},
			"dead-letter":   {amqp091.Table{"x-dead-letter-exchange": "a"}, declares("x-dead-letter-exchange", "b"), "x-dead-letter-exchange", `"b"`, `"a"`},
			"no DLX here":   {amqp091.Table{"x-dead-letter-exchange": "a"}, declares("x-expires", 600000), "x-dead-letter-exchange", "none", `"a"`},
			"length":        {amqp091.Table{"x-max-length": 10}, declares("x-max-length", 20), "x-max-length", `"20"`, `"10"`},
			"single active": {nil, amqp.QueueConfig{SingleActive: true, Declare: amqp.Declare{Type: amqp.Classic}}, "x-single-active-consumer", `"true"`, "none"},
		} {
			queue := s.declare(t, amqp.Classic, c.there)
			_, err := tryOpen(t, b.Queue(queue, c.here), transport.OpenOptions{})
			var m *amqp.Mismatch
			switch {
			case !errors.As(err, &m):
				t.Errorf("%s: %v; want a *Mismatch", what, err)
				continue
			case what == "no DLX here" && m.Argument == "x-expires": // either may be named first
			case what == "type" && m.Want == c.want && m.Have == "none": // for a queue that never had the argument
			case m.Name != queue || m.Argument != c.argument || m.Want != c.want || m.Have != c.have || m.Kind != "queue":
				t.Errorf("%s: %+v", what, *m)
			}
			wants(t, what, err, longshore.CodeMismatch, queue, "Declare", "406")
			s.publish(t, queue, "a")
			passive := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
			passive.ack(passive.take(1)...)
		}
		onChannel(t, s.direct, func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclare("kind", "fanout", true, false, false, false, nil)
		})
		_, err := tryOpen(t, b.Queue("bound", amqp.QueueConfig{Declare: amqp.Declare{Bindings: []amqp.Binding{{Exchange: "kind", Kind: amqp.Topic}}}}), transport.OpenOptions{})
		wants(t, "exchange of another kind", err, longshore.CodeMismatch, `exchange "kind"`, `"topic"`, `"fanout"`)
		_, err = tryOpen(t, b.Queue("bound", amqp.QueueConfig{Declare: amqp.Declare{Bindings: []amqp.Binding{{Exchange: "missing"}}}}), transport.OpenOptions{})
		wants(t, "missing exchange", err, longshore.CodeNotFound, "missing")
		s.publish(t, other, "x")
		neighbour.ack(neighbour.take(1)...)
	})
}

func declares(argument string, v any) amqp.QueueConfig {
	return amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, Arguments: amqp091.Table{argument: v}}}
}

// Everything a source needs is made, the container's dead-letter queue too.
func TestDeclaresWhatIsMissing(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		b := amqp.New(s.url, amqp.Config{})
		src := b.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Bindings: []amqp.Binding{
			{Exchange: "events", Kind: amqp.Topic, Key: "order.#"}, {Exchange: "by-header", Kind: amqp.HeadersKind, Arguments: amqp091.Table{"x-match": "all", "k": "v"}}}}})
		c := open(t, src, transport.OpenOptions{DeadLetter: "orders.dlq"})
		p := publisher(t, b, amqp.PublisherConfig{})
		for _, dest := range []string{"orders.dlq", "orders", "events/order.paid"} {
			if err := publish(p, dest, body(dest)); err != nil {
				t.Errorf("%s: %v", dest, err)
			}
		}
		if err := publish(p, amqp.To("by-header", ""), &longshore.Message{Headers: longshore.Headers{{Name: "k", Value: "v"}}}); err != nil {
			t.Errorf("by header: %v", err)
		}
		c.ack(c.take(3)...)
		open(t, src, transport.OpenOptions{DeadLetter: "orders.dlq"}) // again: nothing differs
	})
}

// An exclusive consumer finds the queue taken, and gets it when it is free.
func TestExclusiveConsumer(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Exclusive: true})
		first := open(t, src, transport.OpenOptions{})
		_, err := tryOpen(t, src, transport.OpenOptions{})
		wants(t, "second exclusive consumer", err, longshore.CodeExclusive, queue)
		s.publish(t, queue, "a")
		first.ack(first.take(1)...)
		first.close()
		second := reopen(t, src, transport.OpenOptions{})
		s.publish(t, queue, "b")
		second.ack(second.take(1)...)
	})
}

// A standby of a single-active queue is ready, says so, and takes over.
func TestSingleActiveStandby(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			src := amqp.New(s.url, amqp.Config{}).Queue("sac-"+string(kind), amqp.QueueConfig{SingleActive: true, Declare: amqp.Declare{Type: kind}})
			active := open(t, src, transport.OpenOptions{})
			standby := open(t, src, transport.OpenOptions{})
			eventually(t, "EventStandby", func() bool { return standby.heard(transport.EventStandby) })
			if active.heard(transport.EventStandby) || standby.heard(transport.EventActive) {
				t.Error("the roles are mixed up")
			}
			caps := as[transport.CapabilityReporter](t, standby.Consumer).Capabilities()
			if !caps.SingleActive || caps.LiveResize {
				t.Errorf("capabilities %+v", caps)
			}
			s.publish(t, "sac-"+string(kind), "a")
			active.ack(active.take(1)...)
			active.must("Flush", active.Flush)
			active.close()
			s.publish(t, "sac-"+string(kind), "b")
			standby.ack(standby.take(1)...)
			eventually(t, "EventActive", func() bool { return standby.heard(transport.EventActive) })
		}
	})
}

// The queue is deleted under the consumer.
func TestQueueIsDeleted(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			queue := s.declare(t, kind, nil)
			s.publish(t, queue, "a")
			c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
			d := c.take(1)[0]
			onChannel(t, s.direct, func(ch *amqp091.Channel) error {
				_, err := ch.QueueDelete(queue, false, false, false)
				return err
			})
			eventually(t, "Observer.Down", func() bool { return c.down() != nil })
			wants(t, "Down", c.down(), longshore.CodeCanceledBy, queue, "deleted")
			wants(t, "Ack", d.Ack(context.Background()), longshore.ErrLost)
			_, err := c.Receive(context.Background(), 1)
			wants(t, "Receive", err, longshore.CodeCanceledBy)
			c.close()
			_, err = tryOpen(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
			wants(t, "Open", err, longshore.CodeNotFound)
		}
	})
}

// Every instance gets every message of a broadcast, and leaves nothing behind.
func TestBroadcast(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.ExchangeKind{amqp.Fanout, amqp.Topic} {
			b := amqp.New(s.url, amqp.Config{})
			src := b.Broadcast("news-"+string(kind), amqp.BroadcastConfig{Kind: kind})
			one, two := open(t, src, transport.OpenOptions{}), open(t, amqp.New(s.url, amqp.Config{}).Broadcast("news-"+string(kind), amqp.BroadcastConfig{}), transport.OpenOptions{})
			p := publisher(t, b, amqp.PublisherConfig{})
			if err := publish(p, amqp.To("news-"+string(kind), "any.key"), body("a"), body("b")); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*sub{one, two} {
				ds := c.take(2)
				if err := ds[1].Nack(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
				c.ack(ds[0])
				again := c.take(1)[0]
				if string(again.Body) != "b" || again.Attempt != 2 || again.Origin.RoutingKey != "any.key" {
					t.Errorf("came back as %s, attempt %d, key %s", again.Body, again.Attempt, again.Origin.RoutingKey)
				}
				c.ack(again)
				c.close()
			}
			wants(t, "nobody listens", publish(p, amqp.To("news-"+string(kind), "any.key"), body("c")), longshore.CodeUnroutable)
		}
	})
}

// Several queues in one source: the window is shared out, order holds within each,
// and what comes back goes to its own queue.
func TestSeveralQueues(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		b := amqp.New(s.url, amqp.Config{})
		names := []string{s.declare(t, amqp.Classic, nil), s.declare(t, amqp.Quorum, nil), s.declare(t, amqp.Classic, nil)}
		c := open(t, b.Queues(amqp.QueueConfig{}, names...), transport.OpenOptions{Window: 30, MaxWindow: 60})
		for _, q := range names {
			s.publish(t, q, numbered(50)...)
		}
		last, back := map[string]string{}, 0
		for range 150 {
			d := c.take(1)[0]
			if string(d.Body) <= last[d.Origin.Topic] {
				t.Errorf("%s: %s after %s", d.Origin.Topic, d.Body, last[d.Origin.Topic])
			}
			last[d.Origin.Topic] = string(d.Body)
			if string(d.Body) == "m0049" {
				back++
				if err := d.Nack(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
				continue
			}
			c.ack(d)
		}
		for range 3 {
			d := c.take(1)[0]
			if string(d.Body) != "m0049" || d.Attempt != 2 || last[d.Origin.Topic] == "" {
				t.Errorf("came back: %s from %s", d.Body, d.Origin.Topic)
			}
			delete(last, d.Origin.Topic)
			c.ack(d)
		}
		if back != 3 || len(last) != 0 {
			t.Errorf("%d went back, not seen again from %v", back, last)
		}
		if err := as[transport.Checker](t, b.Queues(amqp.QueueConfig{}, "a", "", "a")).Check(); err == nil {
			t.Error("a queue without a name and one named twice were accepted")
		}
	})
}

// Pull fetches only what Receive asks for.
func TestPull(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(20)...)
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Pull: true, PullInterval: 20 * time.Millisecond}), transport.OpenOptions{})
		still(t, 200*time.Millisecond, "nothing is fetched", func() bool { return s.ready(t, queue) == 20 })
		held := c.take(5)
		still(t, 200*time.Millisecond, "no more than asked for", func() bool { return s.ready(t, queue) >= 10 })
		c.ack(held...)
		c.ack(c.take(15)...)
		ctx, cancel := within(100 * time.Millisecond)
		defer cancel()
		if _, err := c.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Receive on an empty queue: %v", err)
		}
		s.publish(t, queue, "late")
		eventually(t, "the late one", func() bool {
			ctx, cancel := within(100 * time.Millisecond)
			defer cancel()
			ds, err := c.Receive(ctx, 1)
			c.ack(ds...)
			return err == nil
		})
		c.must("Flush", c.Flush)
		c.close()
		if n := s.ready(t, queue); n != 0 {
			t.Errorf("%d came back", n)
		}
	})
}

// With AutoAck the broker has forgotten what it sent: nothing can be settled, and
// what was not handed out is published again.
func TestAutoAck(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(20)...)
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{AutoAck: true}), transport.OpenOptions{})
		eventually(t, "all were sent", func() bool { return buffered(t, c.Consumer) == 20 })
		ds := c.take(5)
		c.ack(ds[:4]...)
		if err := ds[4].Nack(t.Context(), 0); err != nil {
			t.Errorf("Nack: %v", err)
		}
		c.must("Cancel", c.Cancel)
		c.must("Release", c.Release)
		c.must("Flush", c.Flush)
		c.close()
		if got := s.left(t, queue); len(got) < 16 || len(got) > 16 {
			t.Errorf("%d are in the queue again, want the 15 of the buffer and the one that was returned: %v", len(got), got)
		}
	})
}

// Priority, tag and arguments reach the broker.
func TestConsumerSettings(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	b := amqp.New(s.url, amqp.Config{})
	c := open(t, b.Queue(queue, amqp.QueueConfig{Priority: 7, Tag: "mine", Prefetch: 9}), transport.OpenOptions{})
	q, _ := s.embedded.Queue("/", queue)
	if len(q.Consumers) != 1 || q.Consumers[0].Tag != "mine" || q.Consumers[0].Priority != 7 || q.Consumers[0].Prefetch != 9 {
		t.Errorf("consumers %+v", q.Consumers)
	}
	s.publish(t, queue, "a")
	if d := c.take(1)[0]; d.Origin.Subscription.Tag != "mine" {
		t.Errorf("tag %q", d.Origin.Subscription.Tag)
	}
}

// All mistakes of a configuration at once, without I/O.
func TestAllMistakesAtOnce(t *testing.T) {
	src := amqp.New("amqp://h:0", amqp.Config{Heartbeat: time.Millisecond, External: true}).Queue("", amqp.QueueConfig{
		Prefetch: -5, SettleLinger: -7, PullInterval: -1, Pull: true, Exclusive: true, Arguments: amqp091.Table{"x": struct{}{}},
		Declare: amqp.Declare{Type: amqp.Quorum, Transient: true, Arguments: amqp091.Table{"x-queue-type": "quorum"}, Bindings: []amqp.Binding{{}}}})
	err := as[transport.Checker](t, src).Check()
	wants(t, "Check", err, longshore.CodeConfig, "port", "Heartbeat", "External", "the name", "Prefetch", "SettleLinger", "PullInterval", "Pull", "Arguments", "Declare.Type", "x-queue-type", "Declare.Bindings[0]")
	if _, oerr := tryOpen(t, src, transport.OpenOptions{}); oerr == nil {
		t.Error("opened all the same")
	}
	src = amqp.New("amqp://h", amqp.Config{}).Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, Arguments: amqp091.Table{"x-consumer-timeout": 5}}})
	err = as[transport.Checker](t, src).Check()
	wants(t, "x-consumer-timeout on a classic queue", err, longshore.CodeConfig, "Quorum")
}

// The connections are shared by all sources and end with their last user.
func TestConnectionsAreShared(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	b := amqp.New(s.url, amqp.Config{})
	var subs []*sub
	queue := ""
	for range 3 {
		queue = s.declare(t, amqp.Classic, nil)
		subs = append(subs, open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{}))
	}
	p := publisher(t, b, amqp.PublisherConfig{})
	if err := publish(p, queue, body("x")); err != nil {
		t.Fatal(err)
	}
	if n := len(s.embedded.Connections()); n != 2 {
		t.Errorf("%d connections for three sources and a publisher, want 2", n)
	}
	for _, c := range subs {
		c.close()
	}
	eventually(t, "the consuming connection is gone", func() bool { return len(s.embedded.Connections()) == 1 })
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	eventually(t, "both are gone", func() bool { return len(s.embedded.Connections()) == 0 })
}

// Logged in, but not allowed to.
func TestForbidden(t *testing.T) {
	srv := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: "guest", Password: "guest"}, {Name: "app", Password: "app", Configure: "^$", Read: "^mine$", Write: "^$"}}})
	s := &site{direct: "amqp://guest:guest@" + srv.Addr, url: "amqp://app:app@" + srv.Addr, embedded: srv}
	s.declareNamed(t, "mine", amqp.Classic, nil)
	s.declareNamed(t, "theirs", amqp.Classic, nil)
	b := amqp.New(s.url, amqp.Config{})
	open(t, b.Queue("mine", amqp.QueueConfig{}), transport.OpenOptions{})
	_, err := tryOpen(t, b.Queue("theirs", amqp.QueueConfig{}), transport.OpenOptions{})
	wants(t, "read", err, longshore.CodeForbidden, "theirs", `"app"`)
	_, err = tryOpen(t, b.Queue("new", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), transport.OpenOptions{})
	wants(t, "configure", err, longshore.CodeForbidden, "new", `"app"`)
	wants(t, "write", errorOf(publish(publisher(t, b, amqp.PublisherConfig{}), amqp.To("amq.topic", "x"), body("x"))), longshore.CodeForbidden, "amq.topic")
}
