package amqp_test

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// A channel keeps acks that a quorum queue has no time for yet, and drops them when it
// is closed. So a close after many waits until the queue shows our consumer no more: it
// asks, again if somebody is there who was not before, and not for ever.
func TestCloseAsksWhetherTheQueueHasItAll(t *testing.T) {
	for name, x := range map[string]struct {
		acks, asks int
		other      bool
	}{"few": {acks: 5}, "many": {acks: 40, asks: 1}, "somebody came": {acks: 40, asks: 50, other: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embeddedSite(t, amqptest.Config{})
			queue := s.declare(t, amqp.Quorum, nil)
			s.publish(t, queue, numbered(100)...)
			c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{SettleLinger: time.Hour}), transport.OpenOptions{Window: 250, MaxWindow: 250})
			ds := c.take(100)
			c.must("Cancel", c.Cancel)
			onChannel(t, s.direct, func(ch *amqp091.Channel) error {
				if x.other {
					if _, err := ch.Consume(queue, "", false, false, false, false, nil); err != nil {
						return err
					}
				}
				for i := range x.acks { // never two that are neighbours
					c.ack(ds[2*i+1])
				}
				s.embedded.ResetMethods()
				c.must("Flush", c.Flush)
				c.close()
				return nil
			})
			asks, acks := 0, 0
			for _, m := range s.embedded.Methods() {
				switch m.Name {
				case "queue.declare":
					asks++
				case "basic.ack":
					acks++
				}
			}
			if asks != x.asks || acks != x.acks {
				t.Errorf("%d acks, %d questions; want %d and %d", acks, asks, x.acks, x.asks)
			}
		})
	}
}
