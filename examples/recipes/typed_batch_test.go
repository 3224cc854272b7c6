package recipes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// Handle up to 100 messages in one call; name the ones that failed.
func TestTypedBatch(t *testing.T) {
	server := sqstest.New(t)
	server.CreateQueue(t, "events", nil)
	broker := sqs.New(server.Config()) // sqs.Config{Region: "eu-west-1"}

	type event struct{ ID int }
	var mu sync.Mutex
	stored := map[int]bool{}
	store := longshore.TypedBatch(longshore.JSON{}, func(_ context.Context, events []event, _ []*longshore.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		failed := longshore.BatchError{}
		for i, e := range events {
			if e.ID < 0 {
				failed[i] = longshore.Reject(fmt.Errorf("event %d", e.ID)) // the others are acked
				continue
			}
			stored[e.ID] = true
		}
		return failed // empty: success
	})
	c, err := container.NewBatch(broker.Queue("events", sqs.QueueConfig{}), store, container.Config{
		Batch:      container.Batch{Size: 100, Linger: 20 * time.Millisecond},
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, // or To: "events-dlq"
	})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	for i := range 50 {
		containertest.Publish(t, c, fmt.Sprintf(`{"ID":%d}`, i))
	}
	containertest.Publish(t, c, `{"ID":-1}`, `not JSON`)

	eventually(t, "50 are stored", func() bool { mu.Lock(); defer mu.Unlock(); return len(stored) == 50 })
}
