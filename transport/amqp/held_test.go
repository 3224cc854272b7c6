package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// F-B05, F-B06: a retry that is to wait at the broker is published, and that may not
// be possible while consuming is. Then it waits here, and is handled all the same.
func TestRetryThatCannotBePublishedWaitsHere(t *testing.T) {
	faults := map[string]func(s *site){
		"nobody there": func(s *site) { s.proxy.Refuse() },
		"nacked":       func(s *site) { s.embedded.NackConfirms(1000) },
	}
	for name, fault := range faults {
		for _, auto := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, auto-ack %v", name, auto), func(t *testing.T) {
				t.Parallel()
				s := embeddedSite(t, amqptest.Config{})
				queue := s.declare(t, amqp.Classic, nil)
				s.publish(t, queue, numbered(3)...)
				var done atomic.Int32
				c, err := container.New(amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{AutoAck: auto}),
					longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
						if d.Attempt == 1 {
							fault(s)
							return longshore.Retry(errors.New("not yet"), time.Second)
						}
						done.Add(1)
						return nil
					}), container.Config{Logger: zap.NewNop()})
				if err != nil {
					t.Fatal(err)
				}
				containertest.Start(t, c)
				eventually(t, "all are handled again", func() bool { return done.Load() >= 3 })
				eventually(t, "nothing is left", func() bool {
					q, _ := s.embedded.Queue("/", queue)
					return q.Ready+q.Unacked == 0 && c.Stats().InFlight == 0
				})
			})
		}
	}
}

// F-G03: what waits at the broker for its next attempt outlives a restart wherever the
// original would have: a quorum queue keeps transient messages too.
func TestWaitingRetryOutlivesARestart(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	queue := s.declare(t, amqp.Quorum, nil)
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		return ch.Publish("", queue, true, false, amqp091.Publishing{Body: []byte("a"), DeliveryMode: amqp091.Transient})
	})
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{})
	c := open(t, src, transport.OpenOptions{})
	if err := c.take(1)[0].Nack(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	c.must("Flush", c.Flush)
	s.embedded.Restart()
	again := reopen(t, src, transport.OpenOptions{})
	again.ack(again.take(1)...)
}

// F-G03: RabbitMQ drops what expires from a delay queue into a full queue that refuses.
// Where that is known nothing is sent away to wait: a container lets it wait here.
func TestRetryOfAFullQueueIsNotDropped(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			args := amqp091.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}
			queue := s.declare(t, kind, args)
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Prefetch: 1, Declare: amqp.Declare{Type: kind, Arguments: args}})
			if caps := src.Capabilities(); caps.Delay || caps.MaxDelay != 0 {
				t.Errorf("%s: it offers to hold retries at the broker: %+v", kind, caps)
			}
			s.publish(t, queue, "first")
			c := open(t, src, transport.OpenOptions{})
			d := c.take(1)[0]
			s.publish(t, queue, "second") // it is full now
			wants(t, string(kind), d.Nack(t.Context(), time.Second), longshore.CodeUnsupported, queue, "x-overflow")
			c.ack(d)
			c.ack(c.take(1)...)
		}
	})
}
