package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport/memory"
)

// A consumer that cannot work leaves the broker and comes back when it can.
func Example() {
	mended := make(chan struct{})
	ledger, err := breaker.New(breaker.Config{Name: "ledger", OpenFor: 10 * time.Millisecond, Probe: func(context.Context) error {
		select {
		case <-mended:
			return nil
		default:
			return errors.New("connection refused")
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	paid := make(chan string)
	pay := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		select {
		case <-mended:
			paid <- fmt.Sprintf("%s, attempt %d", d.Body, d.Attempt)
			return nil
		default:
			return breaker.Unavailable(errors.New("connection refused"))
		}
	})
	broker := memory.New(memory.Config{})
	orders := broker.Queue("orders", memory.QueueConfig{})
	c, err := container.New(orders, pay, container.Config{Middleware: []longshore.Middleware{ledger}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	events, stop := c.Events(16)
	defer stop()
	if err := c.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pub.Publish(ctx, "orders", &longshore.Message{Body: []byte("o-1")}); err != nil {
		fmt.Println(err)
	}
	for e := range events {
		if e.Kind == container.EventHeld {
			fmt.Println(e.Text)
			break
		}
	}
	close(mended)
	fmt.Println(<-paid)
	if err := errors.Join(c.Stop(ctx), pub.Close(ctx)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// held by breaker: ledger: 1 of 1 calls failed
	// o-1, attempt 1
}
