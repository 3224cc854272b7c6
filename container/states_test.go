package container_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// slowClose is a running container whose consumer takes so long to close, and the
// states that it tells of.
func slowClose(t *testing.T, closes time.Duration) (c *container.ListenerContainer, b *memory.Broker, states func() []string) {
	t.Helper()
	b = memory.New(memory.Config{})
	b.Delay(memory.OpClose, closes)
	var mu sync.Mutex
	var told []string
	c = start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }), container.Config{
		DrainTimeout: time.Millisecond, CancelGrace: 100 * time.Millisecond,
		OnEvent: func(e container.Event) {
			if e.Kind == container.EventState {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e.Text)
			}
		}})
	return c, b, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
}

// F-A07: it is stopped when all is closed, not before.
func TestItDrainsUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := slowClose(t, 20*time.Millisecond)
		stopped := make(chan error)
		go func() { stopped <- c.Stop(context.Background()) }()
		wait(10 * time.Millisecond)
		if s := c.State(); s != container.StateDraining {
			t.Errorf("while its consumer closes it is %s", s)
		}
		if err := <-stopped; err != nil || c.State() != container.StateStopped {
			t.Errorf("afterwards it is %s: %v", c.State(), err)
		}
	})
}

// F-A07: a consumer that does not close in time takes no more of it.
func TestStopKeepsItsBudgetWhenClosingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := slowClose(t, time.Hour)
		began := time.Now()
		_ = c.Stop(context.Background()) // the report is not what is looked at
		if took := time.Since(began); took > c.StopBudget() {
			t.Errorf("the stop took %v, its budget is %v", took, c.StopBudget())
		}
	})
}

// F-A07: a connection that ends just before a stop is no recovery.
func TestNoStateComesBetweenDrainingAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b, states := slowClose(t, 20*time.Millisecond)
		b.Drop("q")
		synctest.Wait() // the lost consumer is being closed
		_ = c.Stop(context.Background())
		if want := []string{"starting", "running", "recovering", "draining", "stopped"}; !slices.Equal(states(), want) {
			t.Errorf("its states were %v, want %v", states(), want)
		}
	})
}
