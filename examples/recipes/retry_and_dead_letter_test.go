package recipes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// Retry with a growing delay, then dead-letter; some errors are never worth a retry.
func TestRetryAndDeadLetter(t *testing.T) {
	rabbit := amqptest.New(t)
	broker := amqp.New(rabbit.URL, amqp.Config{}) // "amqp://localhost"

	errNoSuchCard := errors.New("no such card")
	charge := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		switch string(d.Body) {
		case "no such card":
			return longshore.Reject(errNoSuchCard) // dead-letter now
		case "busy":
			return longshore.Retry(errors.New("the bank is busy"), 20*time.Millisecond) // this delay instead of the policy's
		case "fails once":
			if d.Attempt == 1 {
				return errors.New("timeout") // the policy decides: a retry, or the end
			}
		}
		return nil
	})
	c, err := container.New(broker.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), charge, container.Config{
		Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}},
		DeadLetter: container.DeadLetter{To: "orders.dlq"},
	})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.Publish(t, c, "good", "fails once", "busy", "no such card")

	eventually(t, "two are dead-lettered, two are done", func() bool {
		s := c.Stats()
		return len(rabbit.Messages("/", "orders.dlq")) == 2 && s.Acked >= 2
	})
}
