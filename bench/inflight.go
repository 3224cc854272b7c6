package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// inFlight holds 10,000 deliveries and counts bytes and goroutines.
func inFlight(_ options, r *report) error {
	const held, workers = 10_000, 100
	broker, err := filled(held, held)
	if err != nil {
		return err
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	block := make(chan struct{})
	var running atomic.Int64
	c, err := container.New(broker.Queue("bench", memory.QueueConfig{Prefetch: held}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		running.Add(1)
		<-block
		return nil
	}), container.Config{Workers: container.Workers{Min: workers, Max: workers}, Lookahead: held - workers, Order: container.ByKey, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	if err := c.Start(context.Background()); err != nil {
		return err
	}
	for c.Stats().InFlight < held {
		<-time.After(10 * time.Millisecond)
	}
	after, more := heap(), runtime.NumGoroutine()-goroutines
	close(block)
	if err := c.Stop(context.Background()); err != nil {
		return err
	}
	per := float64(int64(after)-int64(before)) / held
	r.table("10,000 deliveries in flight, 100 workers", []string{"what", "value"}, [][]string{
		{"bytes per delivery (delivery, item, lane; the body is the queue's)", fmt.Sprintf("%.0f", per)},
		{"goroutines", fmt.Sprint(more)},
	})
	r.bar("in flight: goroutines", fmt.Sprint(more), "≤ workers + 10", more <= workers+10)
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
