package amqp

import (
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// consumeChannel is the channel of one consumer. Only the settle writer's goroutine calls
// it, so that settlements and methods that wait for an answer have one order.
type consumeChannel struct {
	*amqp091.Channel
	prefetch int // as basic.qos set it for the next consumer
}

// setPrefetch sets the window of the consumers that are made next.
func (ch *consumeChannel) setPrefetch(n int) error {
	ch.prefetch = n
	return ch.Qos(n, 0, false)
}

// sync makes the broker answer on the channel: it has then read everything that was
// written before. Setting the same prefetch again changes nothing.
func (ch *consumeChannel) sync() error { return ch.Qos(ch.prefetch, 0, false) }

// stat asks for a queue; known is false where only the broker answered.
func (ch *consumeChannel) stat(queue string) (st amqp091.Queue, known bool, err error) {
	return stat(ch.Channel, queue, ch.prefetch)
}

// passive asks for a queue once, without judging the answer.
func (ch *consumeChannel) passive(queue string) (amqp091.Queue, error) {
	return ch.QueueDeclarePassive(queue, false, false, false, false, nil)
}
