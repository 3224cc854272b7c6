package dlq_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// Of a FIFO group nothing comes while one of it stays: what was to be replayed and lies
// behind is told, not left out in silence.
func TestWhatLiesBehindWhatStaysInAFIFOGroupIsTold(t *testing.T) {
	t.Parallel()
	s := site{name: "sqs", self: "orders.fifo"}
	s.orders = "sqs://orders.fifo?region=eu-west-1&declare=true&endpoint=" + url.QueryEscape(sqstest.New(t).URL)
	s.dead = s.orders
	// One receive brings ten: of thirty of one group the other twenty wait behind.
	c, err := s.letters(t).Open(t.Context(), transport.OpenOptions{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	pub, self, err := s.letters(t).(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // all of ours are
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if err := pub.Publish(t.Context(), self, &longshore.Message{Key: []byte("one"), Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.letters(t), Filter: dlq.Filter{Reason: "panic"}, Quiet: 500 * time.Millisecond})
	if err != nil || res.Kept != 10 || res.Behind != 20 {
		t.Errorf("%+v %v", res, err)
	}
}

// So is a group that another consumer has locked: nothing comes at all.
func TestALockedFIFOGroupIsTold(t *testing.T) {
	t.Parallel()
	s := site{name: "sqs", self: "orders.fifo"}
	s.orders = "sqs://orders.fifo?region=eu-west-1&declare=true&endpoint=" + url.QueryEscape(sqstest.New(t).URL)
	s.dead = s.orders
	other, err := s.letters(t).Open(t.Context(), transport.OpenOptions{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	pub, self, err := s.letters(t).(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // all of ours are
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		if err := pub.Publish(t.Context(), self, &longshore.Message{Key: []byte("one"), Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Receive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.letters(t), To: "elsewhere.fifo", Quiet: 500 * time.Millisecond})
	if err != nil || res.Done != 0 || res.Behind != 6 {
		t.Errorf("%+v %v", res, err)
	}
	if err := errors.Join(pub.Close(t.Context()), other.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// So is what another consumer has to itself.
func TestAPlaceThatAnotherConsumerHasToItselfIsTold(t *testing.T) {
	t.Parallel()
	srv := amqptest.New(t)
	conn, err := amqp091.Dial(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("orders.dlq", true, false, false, false, amqp091.Table{"x-queue-type": "quorum", "x-single-active-consumer": true}); err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("orders.dlq", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	s := site{name: "rabbitmq", dead: srv.URL + "?queue=orders.dlq", self: "orders"}
	s.die(t, 1, 3) // one of which the other consumer holds
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.letters(t), Quiet: 200 * time.Millisecond})
	if err != nil || res.Done != 0 || res.Behind != 2 {
		t.Errorf("%+v %v", res, err)
	}
}
