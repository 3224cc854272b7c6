package container_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// put publishes to a queue of an in-memory broker.
func put(b *memory.Broker, queue string, msgs ...*longshore.Message) {
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err == nil {
		err = pub.Publish(context.Background(), queue, msgs...)
	}
	if err == nil {
		err = pub.Close(context.Background())
	}
	if err != nil {
		panic(err)
	}
}

// The main job: handle what is in a queue, settled by the handler's result.
func Example() {
	type order struct{ ID string }
	broker := memory.New(memory.Config{})
	put(broker, "orders", &longshore.Message{Body: []byte(`{"ID":"o-1"}`)})

	done := make(chan struct{})
	pay := longshore.Typed(longshore.JSON{}, func(_ context.Context, o order, d *longshore.Delivery) error {
		fmt.Println("paid", o.ID, "at attempt", d.Attempt)
		close(done)
		return nil // nil acks; an error is retried with backoff, then dead-lettered
	})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), pay, container.Config{
		DeadLetter: container.DeadLetter{To: "orders.dlq"},
	})
	if err != nil {
		fmt.Println(err) // everything that is wrong, at once
		return
	}
	if err := c.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	if err := c.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: paid o-1 at attempt 1
}

// Messages of one key are handled one after the other, others beside them.
func ExampleOrderFunc() {
	broker := memory.New(memory.Config{})
	for _, body := range []string{"a1", "a2", "a3"} {
		put(broker, "q", &longshore.Message{Body: []byte(body), Headers: longshore.Headers{{Name: "tenant", Value: "a"}}})
	}
	done := make(chan struct{})
	c, err := container.New(broker.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		if string(d.Body) == "a1" && d.Attempt == 1 {
			return errors.New("not yet") // a2 and a3 wait for it
		}
		fmt.Println(string(d.Body))
		if string(d.Body) == "a3" {
			close(done)
		}
		return nil
	}), container.Config{
		Order:      container.OrderFunc(func(d *longshore.Delivery) string { return d.Headers.String("tenant") }),
		Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Millisecond}},
		Logger:     zap.NewNop(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(context.Background())
	<-done
	_ = c.Stop(context.Background())
	// Output:
	// a1
	// a2
	// a3
}

// A batch handler says for each delivery what became of it.
func ExampleNewBatch() {
	broker := memory.New(memory.Config{})
	for _, body := range []string{"1", "2", "x", "4"} {
		put(broker, "numbers", &longshore.Message{Body: []byte(body)})
	}
	done := make(chan struct{})
	c, err := container.NewBatch(broker.Queue("numbers", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
		failed := longshore.BatchError{}
		for i, d := range ds {
			if d.Body[0] == 'x' {
				failed[i] = longshore.Reject(errors.New("not a number"))
			}
		}
		fmt.Printf("%d together, %d failed\n", len(ds), len(failed))
		close(done)
		return failed
	}, container.Config{
		Batch:      container.Batch{Size: 4, Linger: time.Second},
		DeadLetter: container.DeadLetter{To: "numbers.dlq"},
		Logger:     zap.NewNop(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(context.Background())
	<-done
	_ = c.Stop(context.Background())
	if dlq, ok := broker.Queue("numbers.dlq", memory.QueueConfig{}).(transport.Browser); ok {
		dead, _, _ := dlq.Browse(context.Background(), "", 10)
		fmt.Printf("%s: %s\n", dead[0].Body, dead[0].Headers.String(container.HeaderDeadError))
	}
	// Output:
	// 4 together, 1 failed
	// x: not a number
}

// With manual settling slot, lane and context last until the verb, wherever it is called.
func ExampleSettleManual() {
	broker := memory.New(memory.Config{})
	put(broker, "q", &longshore.Message{Body: []byte("m")})
	later := make(chan *longshore.Delivery)
	c, err := container.New(broker.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		later <- d
		return nil
	}), container.Config{Settle: container.SettleManual})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(context.Background())
	d := <-later
	fmt.Println(c.Stats().InFlight, "in flight")
	fmt.Println("first ack:", d.Ack(context.Background()))
	fmt.Println("second ack:", d.Ack(context.Background()))
	_ = c.Stop(context.Background())
	// Output:
	// 1 in flight
	// first ack: <nil>
	// second ack: longshore: delivery already settled
}

// All problems of a configuration are told at once.
func ExampleNew_problems() {
	broker := memory.New(memory.Config{})
	_, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{
		Workers:    container.Workers{Min: 5, Max: 3},
		Redelivery: container.Redelivery{MaxAttempts: -1},
	})
	fmt.Println(err)
	// Output:
	// longshore: container "orders": Workers.Min is 5, must be at most Workers.Max, which is 3
	// longshore: container "orders": Redelivery.MaxAttempts is -1, must be from 0 to 2147483647
}

// What a drain did is in its report.
func ExampleListenerContainer_Report() {
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Start(context.Background())
	if err := c.Stop(context.Background()); errors.Is(err, longshore.CodeDrain) {
		fmt.Println("something was left behind:", err)
	}
	r := c.Report()
	fmt.Println(r.Completed, r.Released, r.Abandoned, r.Unflushed)
	// Output: 0 0 0 0
}

// A throttle is a gate before the worker; any type with these four methods is one.
func ExampleGate() {
	var g container.Gate = newGate(2, 0)
	ok, _ := g.TryAcquire(time.Now())
	permits, rate := g.Limits()
	fmt.Println(ok, permits, rate)
	g.Release()
	// Output: true 2 -1
}
