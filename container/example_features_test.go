package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

// A failed message is retried with a growing delay, then dead-lettered.
func ExampleRedelivery() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	put(broker, "orders", &longshore.Message{Body: []byte("o-1")})
	dead := make(chan container.Event, 1)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Println("attempt", d.Attempt)
		return errors.New("card refused")
	}), container.Config{
		Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: time.Millisecond}},
		DeadLetter: container.DeadLetter{To: "orders.dlq"},
		Logger:     zap.NewNop(),
		OnEvent: func(e container.Event) {
			if e.Kind == container.EventDeadLettered {
				dead <- e
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(ctx)
	<-dead
	_ = c.Stop(ctx)
	info := broker.Inspect("orders.dlq")
	fmt.Println("dead letters:", info.Ready)
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// dead letters: 1
}

// A paused container stays subscribed where it can, and takes nothing.
func ExampleListenerContainer_Pause() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	done := make(chan struct{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		close(done)
		return nil
	}), container.Config{Logger: zap.NewNop(), StartPaused: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(ctx)
	put(broker, "orders", &longshore.Message{})
	fmt.Println(c.Stats().State)
	c.Resume()
	<-done
	c.Pause()
	fmt.Println(c.Stats().State)
	_ = c.Stop(ctx)
	// Output:
	// paused
	// paused
}

// Scale changes the bounds of the workers while the container runs.
func ExampleListenerContainer_Scale() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(nothing), container.Config{
		Workers: container.Workers{Min: 2, Max: 10}, Logger: zap.NewNop(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(ctx)
	_ = c.Scale(4, 50)
	s := c.Stats()
	fmt.Println(s.Min, s.Max)
	_ = c.Stop(ctx)
	// Output: 4 50
}

// Several queues with one handler and one limit, each stopped and paused by its name.
func ExampleNewGroup() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	group, err := container.NewGroup(longshore.HandlerFunc(nothing), container.GroupConfig{
		Config: container.Config{Name: "shop", Throttle: throttle.NewPermits(20), Logger: zap.NewNop()},
	}, broker.Queue("orders", memory.QueueConfig{}), broker.Queue("returns", memory.QueueConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = group.Start(ctx)
	_ = group.PauseSource("returns")
	for _, c := range group.Containers() {
		fmt.Println(c.Name(), c.Stats().State)
	}
	_ = group.Stop(ctx)
	// Output:
	// shop/orders running
	// shop/returns paused
}

// DeleteAlways handles a message once, whatever comes of it.
func ExampleDeletion() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	put(broker, "orders", &longshore.Message{Body: []byte("o-1")}, &longshore.Message{Body: []byte("o-2")})
	done := make(chan string, 2)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		done <- string(d.Body)
		return errors.New("not retried")
	}), container.Config{Deletion: container.DeleteAlways, Workers: container.Workers{Max: 1}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(ctx)
	fmt.Println(<-done, <-done)
	_ = c.Stop(ctx)
	info := broker.Inspect("orders")
	fmt.Println("left:", info.Ready)
	// Output:
	// o-1 o-2
	// left: 0
}

// Bottleneck says in one sentence what limits a container.
func ExampleListenerContainer_Bottleneck() {
	ctx, broker := context.Background(), memory.New(memory.Config{})
	limit := throttle.NewPermits(0)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(nothing), container.Config{Throttle: limit, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(ctx)
	fmt.Println(strings.Contains(c.Bottleneck().Text, "throttle"))
	_ = c.Stop(ctx)
	// Output: true
}

func nothing(context.Context, *longshore.Delivery) error { return nil }
