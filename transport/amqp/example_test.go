package amqp_test

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// Consume a quorum queue that is created if it is missing, with its dead-letter queue.
func ExampleBroker_Queue() {
	consumeOne(func(b *amqp.Broker) transport.Source {
		return b.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	}, "orders")
	// Output: orders: o-1
}

// Consume several queues in one container.
func ExampleBroker_Queues() {
	consumeOne(func(b *amqp.Broker) transport.Source {
		return b.Queues(amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}, "orders", "returns")
	}, "returns")
	// Output: returns: o-1
}

// Every instance gets everything that is published to an exchange.
func ExampleBroker_Broadcast() {
	consumeOne(func(b *amqp.Broker) transport.Source {
		return b.Broadcast("prices", amqp.BroadcastConfig{Kind: amqp.Topic, Keys: []string{"eu.*"}})
	}, amqp.To("prices", "eu.bread"))
	// Output: eu.bread: o-1
}

// Each worker has a consumer with its own channel and prefetch, as in Spring.
func ExampleConsumers() {
	consumeOne(func(b *amqp.Broker) transport.Source {
		return b.Queue("orders", amqp.QueueConfig{Consumers: amqp.PerWorker, Prefetch: 1, Declare: amqp.Declare{Type: amqp.Quorum}})
	}, "orders")
	// Output: orders: o-1
}

// consumeOne starts a container on an embedded server, publishes one message to dest and
// prints its routing key and body.
func consumeOne(source func(*amqp.Broker) transport.Source, dest string) {
	server, err := amqptest.Start(amqptest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	ctx, done := context.Background(), make(chan struct{})
	broker := amqp.New(server.URL, amqp.Config{}) // "amqp://localhost"
	c, err := container.New(source(broker), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Printf("%s: %s\n", d.Origin.RoutingKey, d.Body)
		close(done)
		return nil
	}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	pub, err := broker.Publisher(amqp.PublisherConfig{})
	if err == nil {
		err = pub.Publish(ctx, dest, &longshore.Message{Body: []byte("o-1")})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	<-done
	_ = c.Stop(ctx)
	_ = pub.Close(ctx)
}
