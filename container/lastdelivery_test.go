package container_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// Whether a container is idle, and since when, follows from its Stats: not while a handler runs,
// and again after it has returned.
func TestIdleIsSeenByTheLastDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		release := make(chan struct{})
		c, err := container.New(b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
			<-release
			return nil
		}), quiet(container.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		idle := func() bool {
			s := c.Stats()
			return s.InFlight+s.Parked == 0 && time.Since(s.LastDelivery) > time.Minute
		}
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		pass(2 * time.Minute)
		if !idle() {
			t.Error("not idle without any message")
		}
		publish(t, b, "q", "x")
		pass(2 * time.Minute)
		if idle() {
			t.Error("idle while a handler runs")
		}
		close(release)
		pass(time.Second)
		if !idle() {
			t.Errorf("not idle after it: %+v", c.Stats())
		}
	})
}
