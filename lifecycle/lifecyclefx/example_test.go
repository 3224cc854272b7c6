package lifecyclefx_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
	"github.com/longshore-go/longshore/transport/memory"
)

// One line for each container, and one hook that starts and stops everything. A service
// calls Run on the application.
func Example() {
	done := make(chan struct{})
	broker := memory.New(memory.Config{})
	app := fx.New(fx.NopLogger,
		fx.Provide(zap.NewNop, func() *memory.Broker { return broker }),
		lifecyclefx.Provide(func(b *memory.Broker, log *zap.Logger) (*container.ListenerContainer, error) {
			return container.New(b.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
				fmt.Printf("handled %s\n", d.Body)
				close(done)
				return nil
			}), container.Config{Logger: log})
		}),
		lifecyclefx.Module(lifecycle.Config{StopTimeout: 40 * time.Second}), // last
	)
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	pub, _ := broker.Publisher(memory.PublisherConfig{})
	_ = pub.Publish(ctx, "orders", &longshore.Message{Body: []byte("o-1")})
	<-done
	_ = pub.Close(ctx)
	fmt.Println(app.Stop(ctx))
	// Output:
	// handled o-1
	// <nil>
}
