package amqp_test

import (
	"fmt"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// F-B01, F-B03: the broker cancels many consumers of one channel at once, as it does
// when a node goes down with the queues it led. The others of the connection go on,
// and the source opens again on it.
func TestManyConsumersAreCanceledAtOnce(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		const many = 40
		names := make([]string, many)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%d", transporttest.Name(t), i)
		}
		b := amqp.New(s.url, amqp.Config{})
		src := b.Queues(amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, AutoDelete: true}}, names...)
		other := s.declare(t, amqp.Classic, nil)
		healthy := open(t, b.Queue(other, amqp.QueueConfig{}), transport.OpenOptions{})
		c := open(t, src, transport.OpenOptions{})
		onChannel(t, s.direct, func(ch *amqp091.Channel) error {
			for _, name := range names {
				if _, err := ch.QueueDelete(name, false, false, true); err != nil {
					return err
				}
			}
			return nil
		})
		eventually(t, "the loss is noticed", func() bool { return c.down() != nil })
		s.publish(t, other, "a")
		healthy.ack(healthy.take(1)...)
		again := reopen(t, src, transport.OpenOptions{})
		s.publish(t, names[many-1], "b")
		again.ack(again.take(1)...)
	})
}
