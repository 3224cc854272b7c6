package sqs_test

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// Consume a queue that is created if it is missing, with its dead-letter queue.
func ExampleBroker_Queue() {
	consumeOne("orders", sqs.QueueConfig{}, "o-1")
	// Output: o-1
}

// In a FIFO queue the key is the message group: its messages stay in order.
func ExampleBroker_Queue_fifo() {
	consumeOne("orders.fifo", sqs.QueueConfig{}, "o-1")
	// Output: o-1, group c-91
}

// The handler gets what was published to the SNS topic, not its envelope.
func ExampleSNS() {
	consumeOne("orders", sqs.QueueConfig{Envelope: sqs.SNS},
		`{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:eu-west-1:1:orders","Message":"o-1","Timestamp":"2026-01-02T03:04:05.000Z"}`)
	// Output: o-1
}

// consumeOne starts a container on an embedded server, publishes one message and prints it.
func consumeOne(queue string, cfg sqs.QueueConfig, body string) {
	server, err := sqstest.Start(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	ctx, done := context.Background(), make(chan struct{})
	broker := sqs.New(server.Config()) // sqs.Config{Region: "eu-west-1"}
	cfg.Declare.Attributes = map[string]string{}
	c, err := container.New(broker.Queue(queue, cfg), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Printf("%s", d.Body)
		if len(d.Key) > 0 && d.Origin.GroupID != "" {
			fmt.Printf(", group %s", d.Origin.GroupID)
		}
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
	m := &longshore.Message{Body: []byte(body)}
	if queue != "orders" {
		m.Key = []byte("c-91")
	}
	pub, err := broker.Publisher(sqs.PublisherConfig{})
	if err == nil {
		err = pub.Publish(ctx, queue, m)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	<-done
	_ = c.Stop(ctx)
	_ = pub.Close(ctx)
}
