package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// send publishes texts to a queue of the broker.
func send(ctx context.Context, broker *memory.Broker, queue string, bodies ...string) error {
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		return err
	}
	for _, body := range bodies {
		if err := pub.Publish(ctx, queue, &longshore.Message{Body: []byte(body)}); err != nil {
			return err
		}
	}
	return pub.Close(ctx)
}

func Example() {
	ctx := context.Background()
	broker := memory.New(memory.Config{})
	if err := send(ctx, broker, "orders", "o-1"); err != nil {
		fmt.Println(err)
		return
	}
	c, err := broker.Queue("orders", memory.QueueConfig{}).Open(ctx, transport.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for attempt := 1; attempt <= 2; attempt++ {
		ds, err := c.Receive(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, attempt %d\n", ds[0].Body, ds[0].Attempt)
		if attempt == 1 {
			err = ds[0].Nack(ctx, 0) // again, now
		} else {
			err = ds[0].Ack(ctx)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("acked:", broker.Inspect("orders").Acked)
	if err := c.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// o-1, attempt 1
	// o-1, attempt 2
	// acked: 1
}

// A test cuts the connection while a delivery is being worked on.
func ExampleBroker_Drop() {
	ctx := context.Background()
	broker := memory.New(memory.Config{})
	orders := broker.Queue("orders", memory.QueueConfig{})
	if err := send(ctx, broker, "orders", "o-1"); err != nil {
		fmt.Println(err)
		return
	}
	c, err := orders.Open(ctx, transport.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ds, err := c.Receive(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	broker.Drop("orders")
	fmt.Println("owned:", ds[0].Owned())
	fmt.Println("late ack refused:", errors.Is(ds[0].Ack(ctx), longshore.ErrLost))
	_, err = c.Receive(ctx, 1)
	fmt.Println("consumer down:", errors.Is(err, longshore.CodeConnLost))
	fmt.Println("back in the queue:", broker.Inspect("orders").Ready)
	if err := c.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// owned: false
	// late ack refused: true
	// consumer down: true
	// back in the queue: 1
}

// Every consumer of a topic gets every message; with Retain those that come
// late get the last one.
func ExampleBroker_Broadcast() {
	ctx := context.Background()
	broker := memory.New(memory.Config{})
	control := broker.Broadcast("control", memory.BroadcastConfig{Retain: true})
	if err := send(ctx, broker, "control", "permits=5", "permits=8"); err != nil {
		fmt.Println(err)
		return
	}
	late, err := control.Open(ctx, transport.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ds, err := late.Receive(ctx, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(ds), string(ds[0].Body))
	if err := late.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: 1 permits=8
}
