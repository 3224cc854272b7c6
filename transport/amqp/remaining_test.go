package amqp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

func remaining(t *testing.T, src transport.Source) transport.Remaining {
	t.Helper()
	r, err := as[transport.Remainder](t, src).Remaining(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// F-M03: what is ready, unacknowledged and delayed is counted, the delay queues included. On
// RabbitMQ 4.3 so are retries that a quorum queue delays itself.
func TestRemainingCountsWhatWaitsAnywhere(t *testing.T) {
	addr := brokertest.AMQP(t)
	queue, s := transporttest.Name(t), &site{direct: addr, url: addr}
	kind, args := amqp.Quorum, amqp091.Table(nil)
	returns := int64(0)
	if strings.HasPrefix(brokerVersion(t, addr), "4.3") {
		args, returns = amqp091.Table{"x-delayed-retry-type": "all", "x-delayed-retry-min": int32(60_000), "x-delayed-retry-max": int32(60_000)}, 1
	}
	s.declare(t, kind, nil) // another queue, which does not count
	s.declareNamed(t, queue, kind, args)
	src := amqp.New(addr, amqp.Config{Management: brokertest.Management(t, addr)}).Queue(queue, amqp.QueueConfig{Prefetch: 4})
	s.publish(t, queue, "long", "longer", "held", "returned", "ready", "ready too")
	c := open(t, src, transport.OpenOptions{})
	delays := map[string]time.Duration{"long": 30 * time.Second, "longer": 45 * time.Second}
	held := int64(4)
	for _, d := range c.take(4) {
		var err error
		if delay := delays[string(d.Body)]; delay > 0 {
			err = d.Nack(t.Context(), delay)
		} else if string(d.Body) == "returned" && returns > 0 {
			err = d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	held -= returns // the two ready messages take the place of those that were given back to wait
	want := transport.Remaining{Ready: 0, Unsettled: held, Delayed: 2 + returns, Consumers: 1}
	var r transport.Remaining
	eventually(t, "all is counted", func() bool {
		r = remaining(t, src)
		return r.Unsettled == want.Unsettled && r.Delayed == want.Delayed
	})
	if r.Ready != want.Ready || r.Consumers != 1 || r.Messages() != 6 || !r.Exact || r.Lag == 0 || r.Uncounted != "" {
		t.Errorf("%+v", r)
	}
	if len(r.Of) != 3 || r.Of[0].Name != queue || r.Of[1].Name != "longshore.delay."+queue+".30000" || r.Of[1].Delayed != 1 || r.Of[2].Delayed != 1 {
		t.Errorf("%+v", r.Of)
	}
}

// Without the management API what AMQP does not report is named.
func TestRemainingSaysWhatItCannotCount(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Classic, nil)
	s.publish(t, queue, "a", "b")
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Key: "customer"})
	if r := remaining(t, src); r.Ready != 2 || r.Exact || !strings.Contains(r.Uncounted, "Management") {
		t.Errorf("%+v", r)
	}
	away := as[transport.Neighbour](t, src).Neighbour("missing")
	if _, err := as[transport.Remainder](t, away).Remaining(t.Context()); !errors.Is(err, longshore.CodeNotFound) {
		t.Errorf("a queue that does not exist: %v", err)
	}
}
