package recipes

import (
	"context"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// A queue subscribed to an SNS topic, without raw delivery: the handler gets the message that
// was published to the topic, with its attributes as headers.
func TestSNSToSQS(t *testing.T) {
	server := sqstest.New(t)
	server.CreateQueue(t, "orders", nil)
	broker := sqs.New(server.Config()) // sqs.Config{Region: "eu-west-1"}

	type order struct{ ID string }
	got := make(chan string, 1)
	c, err := container.New(broker.Queue("orders", sqs.QueueConfig{Envelope: sqs.SNS}),
		longshore.Typed(longshore.JSON{}, func(_ context.Context, o order, d *longshore.Delivery) error {
			got <- o.ID + " of " + d.Headers.String("tenant")
			return nil
		}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}}) // or To: "orders-dlq"
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.Publish(t, c, `{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:eu-west-1:1:orders","Message":"{\"ID\":\"o-1\"}",
		"Timestamp":"2026-01-02T03:04:05.000Z","MessageAttributes":{"tenant":{"Type":"String","Value":"blue"}}}`) // as SNS writes it
	if text := <-got; text != "o-1 of blue" {
		t.Error(text)
	}
}
