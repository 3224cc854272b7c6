package recipes

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
	"github.com/longshore-go/longshore/logging"
	"github.com/longshore-go/longshore/transport/memory"
)

// An fx application with two containers that log to slog.
func TestFx(t *testing.T) {
	var orders *container.ListenerContainer
	done := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
	app := fxtest.New(t,
		fx.Provide(
			func() *zap.Logger { return logging.Slog(slog.New(slog.DiscardHandler)) }, // logging.Slog(slog.Default())
			func() *memory.Broker { return memory.New(memory.Config{}) },              // or amqp.New, kafka.New, sqs.New
		),
		lifecyclefx.Provide(
			func(b *memory.Broker, log *zap.Logger) (*container.ListenerContainer, error) {
				c, err := container.New(b.Queue("orders", memory.QueueConfig{}), done, container.Config{Logger: log, DeadLetter: container.DeadLetter{To: "orders.dlq"}})
				orders = c
				return c, err
			},
			func(b *memory.Broker, log *zap.Logger) (*container.ListenerContainer, error) {
				return container.New(b.Queue("invoices", memory.QueueConfig{}), done, container.Config{Logger: log, DeadLetter: container.DeadLetter{To: "invoices.dlq"}})
			},
		),
		lifecyclefx.Module(lifecycle.Config{StopTimeout: 40 * time.Second}), // last
	)
	app.RequireStart()
	containertest.Publish(t, orders, "o-1")
	eventually(t, "it is handled", func() bool { return orders.Stats().Acked == 1 })
	app.RequireStop()
}
