package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/transport/memory"
)

// consume handles what is in a queue of an in-memory broker until n messages were
// given to the handler.
func consume(h longshore.Handler, mws []longshore.Middleware, msgs ...*longshore.Message) {
	broker := memory.New(memory.Config{})
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		panic(err)
	}
	if err := pub.Publish(context.Background(), "orders", msgs...); err != nil {
		panic(err)
	}
	idle := make(chan struct{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), h, container.Config{
		Workers: container.Workers{Max: 1}, Middleware: mws, Logger: zap.NewNop(), DeadLetter: container.DeadLetter{To: "dead"},
	})
	if err != nil {
		panic(err)
	}
	if err := c.Start(context.Background()); err != nil {
		panic(err)
	}
	go func() {
		defer close(idle)
		for i := broker.Inspect("orders"); i.Ready+i.Unsettled+i.Delayed > 0; i = broker.Inspect("orders") {
			<-time.After(time.Millisecond)
		}
	}()
	<-idle
	if err := c.Stop(context.Background()); err != nil {
		panic(err)
	}
}

// A body that is packed reaches the handler plain.
func ExampleDecode() {
	h := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Printf("%s %q\n", d.Body, d.ContentEncoding)
		return nil
	})
	consume(h, []longshore.Middleware{middleware.Decode(middleware.DecodeConfig{})},
		&longshore.Message{Body: []byte("plain")})
	// Output: plain ""
}

// A message that its producer sent twice is handled once.
func ExampleDedupe() {
	h := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Println(d.ID)
		return nil
	})
	consume(h, []longshore.Middleware{middleware.Dedupe(middleware.DedupeConfig{
		ID: func(d *longshore.Delivery) string { return d.ID }, // a stable id of the producer's
	})},
		&longshore.Message{ID: "o-1"}, &longshore.Message{ID: "o-1"}, &longshore.Message{ID: "o-2"})
	// Output:
	// o-1
	// o-2
}

// A handler that obeys its context is over after the limit.
func ExampleTimeout() {
	h := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return longshore.Discard(ctx.Err())
	})
	consume(h, []longshore.Middleware{middleware.Timeout(20 * time.Millisecond)}, &longshore.Message{})
	// Output: longshore: handle: the handler took longer than 20ms
}

// One line for each message; here the log is looked at by its fields.
func ExampleLog() {
	core, lines := observer.New(zap.InfoLevel)
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
	consume(h, []longshore.Middleware{middleware.Log(zap.New(core))}, &longshore.Message{ID: "o-1"})
	for _, l := range lines.All() {
		fmt.Println(l.Message, l.ContextMap()["verdict"], l.ContextMap()["message_id"])
	}
	// Output: handled ack o-1
}

// Outside of a container a panic would end the program.
func ExampleRecover() {
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { panic("no such order") })
	err := longshore.Chain(h, middleware.Recover()).Handle(context.Background(), &longshore.Delivery{})
	fmt.Println(err, errors.Is(err, longshore.CodePanic))
	// Output: longshore: handle: panic: no such order true
}

// A new version of a handler sees the same messages; only the first one's result
// counts.
func ExampleNewShadow() {
	shadow := middleware.NewShadow(middleware.ShadowConfig{
		Handler: longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return errors.New("price is missing") }),
		Compare: func(d *longshore.Delivery, main, shadow error, _ any) {
			fmt.Printf("%s: %v, new version: %v\n", d.ID, main, shadow)
		},
	})
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
	consume(h, []longshore.Middleware{shadow}, &longshore.Message{ID: "o-1"})
	_ = shadow.Wait(context.Background())
	// Output: o-1: <nil>, new version: price is missing
}
