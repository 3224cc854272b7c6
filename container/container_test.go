package container_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestEveryMessageIsHandledAndAcked(t *testing.T) {
	b := memory.New(memory.Config{})
	publish(t, b, "q", numbered(1000)...)
	var got seen
	c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
		got.add(string(d.Body))
		return nil
	}), container.Config{})
	eventually(t, "all handled", func() bool { return got.len() == 1000 })
	stop(t, c)
	if i := b.Inspect("q"); i.Ready != 0 || i.Unsettled != 0 {
		t.Fatalf("left at the broker: %+v", i)
	}
	if st := c.Stats(); st.Acked != 1000 || st.InFlight != 0 || st.State != container.StateStopped {
		t.Fatalf("%+v", st)
	}
}

// F-A07: every order of calls on a container that was never started, runs, or has
// stopped.
func TestLifecycleEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }), quiet(container.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if c.State() != container.StateNew || c.Stop(ctx) != nil || c.Report() != nil {
			t.Fatalf("stop before start: %v", c.State())
		}
		for range 3 {
			for range 2 {
				if err := c.Start(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if c.State() != container.StateRunning {
				t.Fatal(c.State())
			}
			done := c.Done()
			c.Pause()
			if c.State() != container.StatePaused {
				t.Fatal(c.State())
			}
			c.Resume()
			for range 2 {
				if err := c.Stop(ctx); err != nil {
					t.Fatal(err)
				}
			}
			<-done
			if c.State() != container.StateStopped || b.Connections() != 0 {
				t.Fatal(c.State(), b.Connections())
			}
		}
	})
}
