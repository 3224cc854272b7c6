package amqp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

func body(s string) *longshore.Message { return &longshore.Message{ID: s, Body: []byte(s)} }

// F-B05: published to nowhere. A returned message is an error although it is
// confirmed, and only that one.
func TestUnroutableIsAnError(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		b := amqp.New(s.url, amqp.Config{})
		p := publisher(t, b, amqp.PublisherConfig{})
		if err := publish(p, queue, body("a")); err != nil {
			t.Fatal(err)
		}
		wants(t, "no such queue", publish(p, "nobody", body("b")), longshore.CodeUnroutable, "312", "nobody")
		wants(t, "no such exchange", publish(p, "nowhere/key", body("c")), longshore.CodeNotFound, "nowhere")
		onChannel(t, s.direct, func(ch *amqp091.Channel) error {
			if err := ch.ExchangeDeclare("by-key", "direct", false, true, false, false, nil); err != nil {
				return err
			}
			return ch.QueueBind(queue, "good", "by-key", false, nil)
		})
		// Neighbours at the same time: some return, some do not.
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := publish(p, amqp.To("by-key", "good"), body("x"), body("x")); err != nil {
					t.Errorf("routable: %v", err)
				}
			})
			all.Go(func() {
				err := publish(p, amqp.To("by-key", "bad"), body("x"), body("x"), body("y"))
				var partial *transport.PartialError
				if !errors.As(err, &partial) || len(partial.Failed) != 3 {
					t.Errorf("unroutable: %v", err)
				}
			})
		}
		all.Wait()
		if n := len(s.left(t, queue)); n != 21 {
			t.Errorf("%d messages arrived, want 21", n)
		}
		lax := publisher(t, b, amqp.PublisherConfig{AllowUnroutable: true})
		if err := publish(lax, amqp.To("by-key", "bad"), body("z")); err != nil {
			t.Errorf("AllowUnroutable: %v", err)
		}
	})
}

// F-B05: a half-open link. Nothing is believed to be sent; when the drop is
// noticed every outstanding confirm fails at once.
func TestPublishIntoADeadLink(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		p := publisher(t, amqp.New(s.url, amqp.Config{Heartbeat: time.Second}), amqp.PublisherConfig{Timeout: 300 * time.Millisecond})
		if err := publish(p, queue, body("before")); err != nil {
			t.Fatal(err)
		}
		s.proxy.BlackHole(true)
		start := time.Now()
		wants(t, "black hole", publish(p, queue, body("lost")), longshore.CodeTimeout, queue)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the call took %s with a timeout of 300ms", took)
		}
		s.proxy.BlackHole(false)
		s.proxy.CutAll()
		patient := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{})
		eventually(t, "publishing works again", func() bool { return publish(patient, queue, body("after")) == nil })
		// Outstanding when the link is cut.
		s.proxy.BlackHole(true)
		result := make(chan error, 1)
		go func() { result <- publish(patient, queue, body("cut")) }()
		still(t, 200*time.Millisecond, "no result", func() bool { return len(result) == 0 })
		cut := time.Now()
		s.proxy.ResetAll()
		err := <-result
		if took := time.Since(cut); err == nil || took > time.Second {
			t.Errorf("after the reset: %v, %s later", err, took)
		}
		s.proxy.BlackHole(false)
	})
}

// F-B06: the broker blocks publishers. A caller is free after its deadline, its
// messages are not left behind in the socket, consumers are fed, and afterwards
// everything goes on by itself.
func TestBrokerBlocksPublishers(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		s := embeddedSite(t, amqptest.Config{})
		blocked(t, s, func(on bool) {
			if on {
				s.embedded.Block("low on memory")
			} else {
				s.embedded.Unblock()
			}
		})
	})
	t.Run("rabbitmq", func(t *testing.T) {
		brokertest.AMQP(t)
		node := brokertest.FaultNode(t)
		p, through := proxied(t, node.URL)
		blocked(t, &site{direct: node.URL, url: through, proxy: p}, node.MemoryAlarm)
	})
}

func blocked(t *testing.T, s *site, alarm func(on bool)) {
	queue, results := s.declare(t, amqp.Classic, nil), s.declare(t, amqp.Classic, nil)
	b := amqp.New(s.url, amqp.Config{})
	s.publish(t, queue, numbered(40)...)
	c := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 16, MaxWindow: 16})
	c.ack(c.take(1)...)
	p := publisher(t, b, amqp.PublisherConfig{Timeout: 500 * time.Millisecond})
	if err := publish(p, results, body("before")); err != nil {
		t.Fatal(err)
	}
	alarm(true)
	defer alarm(false)
	big := &longshore.Message{Body: []byte(strings.Repeat("x", 100_000))}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			start := time.Now()
			err := publish(p, results, big)
			// F-N21: what was written and not confirmed may have been sent. Once the broker has
			// said that it blocks publishers, nothing more is written, and the error says so.
			if !errors.Is(err, longshore.CodeBlocked) && (!errors.Is(err, longshore.CodeMaybeSent) || !errors.Is(err, longshore.CodeTimeout)) {
				t.Errorf("while blocked: %v", err)
			}
			if took := time.Since(start); took > 1500*time.Millisecond {
				t.Errorf("a caller with a deadline of 500ms was held for %s", took)
			}
		})
	}
	calls.Wait()
	eventually(t, "EventBlocked", func() bool { return c.heard(transport.EventBlocked) })
	wants(t, "known to be blocked", publish(p, results, big), longshore.CodeBlocked, "low on memory")
	for range 39 { // fed all the time
		c.ack(c.take(1)...)
	}
	c.must("Flush", c.Flush)
	if err := c.down(); err != nil {
		t.Errorf("the consumer is down: %v", err)
	}
	alarm(false)
	eventually(t, "EventUnblocked", func() bool { return c.heard(transport.EventUnblocked) })
	eventually(t, "publishing works again", func() bool { return publish(p, results, body("after")) == nil })
}

// errorOf returns the first message's error.
func errorOf(err error) error {
	var partial *transport.PartialError
	if errors.As(err, &partial) {
		for _, e := range partial.Failed {
			return e
		}
	}
	return err
}

// Publishing with nobody waiting: the connection takes nothing, and Close comes
// back within its time.
func TestCloseOfAPublisherIsBounded(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	p, err := amqp.New(s.url, amqp.Config{}).Publisher(amqp.PublisherConfig{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(p, queue, body("a")); err != nil {
		t.Fatal(err)
	}
	s.proxy.BlackHole(true)
	big := &longshore.Message{Body: make([]byte, 16<<20)} // more than sockets hold
	result := make(chan error, 1)
	go func() { result <- p.Publish(context.Background(), queue, big, big) }()
	still(t, 200*time.Millisecond, "the write hangs", func() bool { return len(result) == 0 })
	ctx, cancel := within(300 * time.Millisecond)
	defer cancel()
	start := time.Now()
	_ = p.Close(ctx)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("Close took %s", took)
	}
	if err := <-result; err == nil {
		t.Error("the hanging Publish succeeded")
	}
	wants(t, "Publish after Close", publish(p, queue, body("b")), longshore.ErrClosed)
}

// The queue itself refuses (basic.nack): an error for that message.
func TestQueueRefusesAMessage(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, amqp091.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
		p := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{})
		if err := publish(p, queue, body("fits")); err != nil {
			t.Fatal(err)
		}
		wants(t, "full queue", publish(p, queue, body("too much")), longshore.CodeRefused, "nack")
	})
}

// Everything for which a broker ends a channel or a connection is found before
// it is sent, and refuses that message alone. F-I01
func TestWhatWouldEndTheChannelIsRefusedAlone(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		p := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{})
		long := strings.Repeat("x", 256)
		deep := any("x")
		for range 40 {
			deep = []any{deep}
		}
		header := func(name string, v any) longshore.Message {
			return longshore.Message{Headers: longshore.Headers{{Name: name, Value: v}}}
		}
		for what, c := range map[string]struct {
			m    longshore.Message
			code longshore.Code
		}{
			"header table beyond frame_max": {header("big", strings.Repeat("x", 200_000)), longshore.CodeTooLarge},
			"header name beyond 255 bytes":  {header(long, 1), longshore.CodeBadHeader},
			"kind that AMQP has not":        {header("f", func() {}), longshore.CodeBadHeader},
			"nested too deep":               {header("deep", deep), longshore.CodeBadHeader},
			"array with too many elements":  {header("many", make([]any, 9000)), longshore.CodeBadHeader},
			"ID beyond 255 bytes":           {longshore.Message{ID: long}, longshore.CodeRefused},
			"content type beyond 255":       {longshore.Message{ContentType: long}, longshore.CodeRefused},
			"negative expiration":           {longshore.Message{Expiration: -1}, longshore.CodeRefused},
			"delivery mode 7":               {longshore.Message{DeliveryMode: 7}, longshore.CodeRefused},
		} {
			err := publish(p, queue, body("good"), &c.m, body("good"))
			var partial *transport.PartialError
			if !errors.As(err, &partial) || len(partial.Failed) != 1 || !errors.Is(partial.Failed[1], c.code) {
				t.Errorf("%s: %v; want [1] refused with %s", what, err, c.code)
			}
			if got := s.left(t, queue); len(got) != 2 {
				t.Errorf("%s: the neighbours did not arrive: %v", what, got)
			}
		}
		wants(t, "routing key beyond 255", publish(p, long, body("x")), longshore.CodeConfig)
		if s.embedded != nil {
			for _, c := range s.embedded.Connections() {
				t.Logf("%s still open with %d channels", c.ClientName, len(c.Channels))
			}
		}
	})
}

// Values that would be acted upon or refused are carried, and come back. F-I01
func TestPropertiesThatTheBrokerWouldActUpon(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue, victim := s.declare(t, amqp.Classic, nil), s.declare(t, amqp.Classic, nil)
		b := amqp.New(s.url, amqp.Config{})
		p := publisher(t, b, amqp.PublisherConfig{})
		m := &longshore.Message{ID: "1", Body: []byte("b"), UserID: "somebody else", ReplyTo: "amq.rabbitmq.reply-to",
			Headers: longshore.Headers{{Name: "BCC", Value: []any{victim}}, {Name: "CC", Value: "not an array"}, {Name: "longshore-key", Value: "the user's"},
				{Name: "x-death", Value: "not an array"}, {Name: "x-delivery-count", Value: int64(7)}}}
		if err := publish(p, queue, m); err != nil {
			t.Fatal(err)
		}
		c := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		d := c.take(1)[0]
		if d.UserID != m.UserID || d.ReplyTo != m.ReplyTo || d.Headers.String("CC") != "not an array" || !d.Headers.Has("BCC") ||
			d.Headers.String("longshore-key") != "the user's" || d.Key != nil || d.Attempt != 1 || d.Headers.Has("x-death") {
			t.Errorf("came back as %+v, attempt %d", d.Message, d.Attempt)
		}
		c.ack(d)
		if n := s.ready(t, victim); n != 0 {
			t.Errorf("%d copies were routed by BCC", n)
		}
	})
}

// A body beyond the broker's limit is refused, its neighbours fail or arrive, and
// from then on the limit is known.
func TestMessageLargerThanTheBrokerTakes(t *testing.T) {
	t.Run("rabbitmq", func(t *testing.T) {
		direct := brokertest.AMQP(t)
		s := &site{direct: direct, url: direct}
		queue := s.declare(t, amqp.Classic, nil)
		p := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{Timeout: time.Minute})
		huge := &longshore.Message{ID: "huge", Body: make([]byte, 128<<20+1)}
		for range 2 {
			wants(t, "128 MiB + 1", publish(p, queue, huge), longshore.CodeTooLarge)
		}
		if err := publish(p, queue, body("next")); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

// A message that is larger than the broker takes closes the channel. Others on it, of other
// calls too, are sent again, and go through. F-N18
func TestALargeMessageFailsNoOther(t *testing.T) {
	t.Parallel()
	s := embeddedSite(t, amqptest.Config{Flavor: amqptest.V4_0})
	queue := s.declare(t, amqp.Classic, nil)
	for round := range 3 { // the limit is known from the first one on
		p := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{})
		if err := publish(p, queue, body("first")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := publish(p, queue, body("small"), body("small")); err != nil {
					t.Errorf("round %d: a neighbour failed: %v", round, err)
				}
			})
		}
		all.Go(func() {
			var partial *transport.PartialError
			err := publish(p, queue, body("beside"), &longshore.Message{Body: make([]byte, 16<<20+1)}, body("beside"))
			if !errors.As(err, &partial) || !slices.Equal(partial.Indexes(), []int{1}) || !errors.Is(err, longshore.CodeTooLarge) {
				t.Errorf("round %d: %v, want the large one alone to fail", round, err)
			}
		})
		all.Wait()
	}
	if n := s.ready(t, queue); n < 3*(1+40+2) {
		t.Errorf("%d messages arrived", n)
	}
}
