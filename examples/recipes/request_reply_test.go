package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// Ask another service over RabbitMQ and wait for its reply.
func TestRequestAndReply(t *testing.T) {
	broker := amqp.New(amqptest.New(t).URL, amqp.Config{}) // "amqp://localhost"

	// The service that answers.
	pub, err := broker.Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	answer := amqp.Replier(pub, func(_ context.Context, d *longshore.Delivery) (*longshore.Message, error) {
		return &longshore.Message{Body: append([]byte("price of "), d.Body...)}, nil
	})
	c, err := container.New(broker.Queue("prices", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), answer,
		container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)

	// The one that asks.
	prices, err := broker.Requester(amqp.RequesterConfig{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := prices.Request(t.Context(), "prices", &longshore.Message{Body: []byte("item 7")})
	if err != nil || string(reply.Body) != "price of item 7" {
		t.Errorf("%v, %v", reply, err)
	}
	if err := prices.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := pub.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
