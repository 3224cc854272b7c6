package container

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/memory"
)

// What a handler asked for is forgotten with its call, however that ends.
func TestWhatWasAskedForIsForgotten(t *testing.T) {
	for name, end := range map[string]func(){"return": func() {}, "panic": func() { panic("p") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				p, err := b.Publisher(memory.PublisherConfig{})
				if err == nil {
					err = p.Publish(t.Context(), "q", &longshore.Message{ID: "m"})
				}
				if err != nil {
					t.Fatal(err)
				}
				again := make(chan struct{})
				c, err := New(b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					if d.Attempt > 1 {
						close(again)
						return nil
					}
					defer end()
					return d.Nack(ctx, time.Second)
				}), Config{})
				if err == nil {
					err = c.Start(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				<-again
				synctest.Wait()
				if n := c.asked.n.Load(); n != 0 {
					t.Errorf("%d are remembered", n)
				}
				if err := c.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
