package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// drain stops a container whose 50 handlers of 2 s have just begun.
func drain(o options, r *report) error {
	var beyond []float64
	for range o.rounds {
		d, err := drained()
		if err != nil {
			return err
		}
		beyond = append(beyond, float64(d.Microseconds())/1000)
	}
	worst := slices.Max(beyond)
	r.table("Drain: 50 handlers of 2 s, 50 more waiting", []string{"what", "ms min / median / max"},
		[][]string{{"Stop returns after the last handler by", spread(beyond, "%.1f")}})
	r.bar("drain: after the last handler", fmt.Sprintf("%.1f ms", worst), "≤ 100 ms", worst <= 100)
	return nil
}

func drained() (time.Duration, error) {
	broker, err := filled(100, 100)
	if err != nil {
		return 0, err
	}
	var running atomic.Int64
	all := make(chan struct{})
	var last atomic.Int64
	c, err := container.New(broker.Queue("bench", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		if running.Add(1) == 50 {
			close(all)
		}
		<-time.After(2 * time.Second)
		last.Store(time.Now().UnixNano())
		return nil
	}), container.Config{Workers: container.Workers{Min: 50, Max: 50}, Order: container.Unordered, Logger: zap.NewNop()})
	if err != nil {
		return 0, err
	}
	if err := c.Start(context.Background()); err != nil {
		return 0, err
	}
	<-all
	if err := c.Stop(context.Background()); err != nil {
		return 0, err
	}
	return time.Since(time.Unix(0, last.Load())), nil
}
