package containertest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitIdleWaitsForRetries(t *testing.T) {
	var calls atomic.Int32
	h := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		calls.Add(1)
		if d.Attempt == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), h, container.Config{
		Logger:     zap.NewNop(),
		Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: 20 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.Publish(t, c, "a", "b", "c")
	containertest.WaitIdle(t, c)
	if n := calls.Load(); n != 6 {
		t.Fatalf("%d calls, want 6", n)
	}
}
