package amqp_test

import (
	"fmt"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// Two queues on a consistent-hash exchange share the messages by their weights, and those of
// one key meet in one queue: by the routing key, and by a header. On a node of its own that
// has RabbitMQ's plugin enabled.
func TestConsistentHashExchange(t *testing.T) {
	node := brokertest.FaultNode(t)
	b := amqp.New(node.URL, amqp.Config{})
	for name, args := range map[string]amqp091.Table{"routing key": nil, "header": {"hash-header": "customer"}} {
		t.Run(name, func(t *testing.T) {
			exchange := transporttest.Name(t)
			queue := func(i int) transport.Source {
				return b.Queue(fmt.Sprintf("%s-%d", exchange, i), amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic,
					Bindings: []amqp.Binding{{Exchange: exchange, Key: []string{"1", "3"}[i], Kind: amqp.ConsistentHash, ExchangeArguments: args}}}})
			}
			for i := range 2 {
				open(t, queue(i), transport.OpenOptions{}).close() // declares it
			}
			p := publisher(t, b, amqp.PublisherConfig{})
			const keys, each = 200, 3
			for round := range each {
				for k := range keys {
					m := &longshore.Message{Body: fmt.Append(nil, k), Headers: longshore.Headers{}}
					dest := fmt.Sprintf("%s/key-%d", exchange, k)
					if args != nil {
						m.Headers.Set("customer", fmt.Sprintf("key-%d", k))
						dest = fmt.Sprintf("%s/round-%d", exchange, round)
					}
					if err := publish(p, dest, m); err != nil {
						t.Fatal(err)
					}
				}
			}
			at := map[string]int{}
			share := []int{}
			for i := range 2 {
				n := ready(t, node.URL, fmt.Sprintf("%s-%d", exchange, i))
				share = append(share, n)
				s := open(t, queue(i), transport.OpenOptions{})
				for range n {
					d := s.take(1)[0]
					key := string(d.Body)
					if first, seen := at[key]; seen && first != i {
						t.Errorf("messages of key %s are in both queues", key)
					}
					at[key] = i
					s.ack(d)
				}
			}
			if total := share[0] + share[1]; total != keys*each || share[1] < 2*share[0] {
				t.Errorf("%v of %d messages for the weights 1 and 3", share, keys*each)
			}
		})
	}
}

func TestConsistentHashNeedsAWeight(t *testing.T) {
	src := amqp.New("amqp://127.0.0.1:1/", amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Bindings: []amqp.Binding{
		{Exchange: "shared", Key: "orders.*", Kind: amqp.ConsistentHash}, {Exchange: "other", ExchangeArguments: amqp091.Table{"hash-header": "x"}}}}})
	err := as[transport.Checker](t, src).Check()
	wants(t, "a key that is no weight", err, longshore.CodeConfig, "weight", "ExchangeArguments")
}
