package container_test

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N20: a tombstone that a handler cannot take goes to the dead-letter destination as a
// tombstone, with a reason that says so.
func TestTombstoneIsDeadLetteredAsOne(t *testing.T) {
	type order struct{ ID string }
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.Typed(longshore.JSON{}, func(context.Context, order, *longshore.Delivery) error {
		t.Error("the handler ran")
		return nil
	}), container.Config{Logger: zap.NewNop(), DeadLetter: container.DeadLetter{To: "dead"}})
	if err != nil {
		t.Fatal(err)
	}
	dead := make(chan longshore.Message, 1)
	seen, err := container.New(broker.Queue("dead", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		dead <- d.Message
		return nil
	}), container.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.Start(t, seen)
	containertest.PublishMessages(t, c, &longshore.Message{Key: []byte("k")})
	m := <-dead
	if m.Body != nil || string(m.Key) != "k" || m.Headers.String(container.HeaderDeadReason) != string(longshore.CodeTombstone) {
		t.Errorf("%+v", m)
	}
}
