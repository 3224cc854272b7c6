package amqp_test

import (
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// A follower gets a copy of what arrives from now on, by the bindings of the queue as RabbitMQ's own
// management API has them, with their arguments; the queue keeps everything. A stream is read from its end.
func TestFollowTakesNothing(t *testing.T) {
	addr := brokertest.AMQP(t)
	s, queue, stream := &site{direct: addr, url: addr}, transporttest.Name(t), transporttest.Name(t)
	b := amqp.New(addr, amqp.Config{Management: brokertest.Management(t, addr)})
	s.declareNamed(t, queue, amqp.Quorum, nil)
	s.declareNamed(t, stream, amqp.Stream, nil)
	bound := open(t, b.Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Bindings: []amqp.Binding{
		{Exchange: queue + ".topic", Key: "order.#", Kind: amqp.Topic},
		{Exchange: queue + ".headers", Kind: amqp.HeadersKind, Arguments: amqp091.Table{"x-match": "all", "n": int64(7)}},
	}}}), transport.OpenOptions{})
	bound.close()
	s.publish(t, stream, "before")
	for _, name := range []string{queue, stream} {
		src := b.Queue(name, amqp.QueueConfig{})
		copies, missing, err := as[transport.Follower](t, src).Follow(t.Context())
		if err != nil || (missing == "") != (name == stream) {
			t.Fatalf("%q %v", missing, err)
		}
		f := open(t, copies, transport.OpenOptions{})
		p := publisher(t, b, amqp.PublisherConfig{})
		to := map[string][]*longshore.Message{stream: {{Body: []byte("a")}, {Body: []byte("b")}}}
		if name == queue {
			to = map[string][]*longshore.Message{queue + ".topic/order.new": {{Body: []byte("a")}},
				queue + ".headers/x": {{Body: []byte("b"), Headers: longshore.Headers{{Name: "n", Value: int64(7)}}}}}
		}
		for dest, ms := range to {
			if err := publish(p, dest, ms...); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for _, d := range f.take(2) {
			seen[string(d.Body)] = true
			f.ack(d)
		}
		if !seen["a"] || !seen["b"] {
			t.Errorf("%s: %v", name, seen)
		}
		f.close()
	}
	if n := s.ready(t, queue); n != 2 {
		t.Errorf("%d messages are left in the queue", n)
	}
}
