package amqp_test

import (
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-N15: 30 orderly stops with messages in hand take no attempt and lose nothing, whatever
// the queue's limit is and whether it is known.
func TestStopsUseUpNothing(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		for name, like := range map[string]struct {
			args     amqp091.Table
			declared bool
		}{"default limit": {nil, true}, "default limit, not declared": {nil, false}, "limit 3": {amqp091.Table{"x-delivery-limit": 3}, true}} {
			t.Run(name, func(t *testing.T) {
				queue := s.declare(t, amqp.Quorum, like.args)
				cfg := amqp.QueueConfig{}
				if like.declared {
					cfg.Declare = amqp.Declare{Type: amqp.Quorum, Arguments: like.args}
				}
				src := amqp.New(s.url, amqp.Config{}).Queue(queue, cfg)
				s.publish(t, queue, numbered(5)...)
				for range 30 {
					c := open(t, src, transport.OpenOptions{Window: 16, MaxWindow: 16})
					eventually(t, "all are here", func() bool { return buffered(t, c.Consumer) == 5 })
					c.must("Cancel", c.Cancel)
					c.must("Release", c.Release)
					c.close()
					eventually(t, "all are back", func() bool { return s.ready(t, queue) == 5 })
				}
				c := open(t, src, transport.OpenOptions{})
				for _, d := range c.take(5) {
					if d.Attempt != 1 {
						t.Errorf("%s: attempt %d after 30 stops", d.Body, d.Attempt)
					}
					c.ack(d)
				}
			})
		}
	})
}

// F-N15: a message that others have returned up to the limit is told of, and comes back
// from us by a copy, where one more return would lose it.
func TestLastReturnIsToldAndNotMade(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		args := amqp091.Table{"x-delivery-limit": 2}
		queue := s.declare(t, amqp.Quorum, args)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: args}})
		l := &lives{site: s}
		s.publish(t, queue, "m")
		for range 2 {
			l.get(t, queue, true)
		}
		c := open(t, src, transport.OpenOptions{Ordered: true})
		if n := as[transport.CapabilityReporter](t, c.Consumer).Capabilities().DeliveryLimit; n != 2 {
			t.Errorf("the limit is %d", n)
		}
		if !c.heard(transport.EventNotice) {
			t.Errorf("not told that nothing catches what the limit drops")
		}
		d := c.take(1)[0]
		if !d.Origin.LastReturn || d.Attempt != 1 {
			t.Errorf("last return %t, attempt %d", d.Origin.LastReturn, d.Attempt)
		}
		c.must("Cancel", c.Cancel)
		if err := d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}); err != nil {
			t.Fatal(err)
		}
		c.close()
		if d := open(t, src, transport.OpenOptions{}).take(1)[0]; string(d.Body) != "m" || d.Origin.LastReturn {
			t.Errorf("%s came back, last return %t", d.Body, d.Origin.LastReturn)
		}
	})
}

// F-N15: the limit that a policy sets is known by the management API.
func TestLimitOfAPolicy(t *testing.T) {
	url := brokertest.AMQP(t)
	s := &site{direct: url, url: url}
	queue := s.declare(t, amqp.Quorum, nil)
	brokertest.Policy(t, url, "limit", ".*", `{"delivery-limit":2}`)
	src := amqp.New(url, amqp.Config{Management: brokertest.Management(t, url)}).Queue(queue, amqp.QueueConfig{})
	c := open(t, src, transport.OpenOptions{})
	reporter := as[transport.CapabilityReporter](t, c.Consumer)
	eventuallyWithin(t, time.Minute, "the policy's limit is known", func() bool { return reporter.Capabilities().DeliveryLimit == 2 })
}

func TestManagementIsChecked(t *testing.T) {
	for _, address := range []string{"localhost:15672", "ftp://localhost", "http://", "http://user:geheim@:x"} {
		err := as[transport.Checker](t, amqp.New("amqp://localhost", amqp.Config{Management: address}).Queue("q", amqp.QueueConfig{})).Check()
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
