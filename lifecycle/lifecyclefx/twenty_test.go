package lifecyclefx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// An application of twenty containers on one broker. The bar is a second for the start
// and one for the stop with nothing running; the times are printed, for a loaded machine
// tells nothing about them.
func TestTwentyContainersInAnFxApplication(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return amqptest.New(t).URL },
		"rabbitmq": func(t *testing.T) string { return brokertest.AMQP(t) },
	} {
		t.Run(name, func(t *testing.T) {
			rabbit := amqp.New(url(t), amqp.Config{})
			made := make(chan *container.ListenerContainer, 20)
			opts := []fx.Option{fx.Supply(zap.NewNop())}
			for i := range 20 {
				opts = append(opts, lifecyclefx.Provide(func(log *zap.Logger) (*container.ListenerContainer, error) {
					c, err := container.New(rabbit.Queue(fmt.Sprintf("q%d", i), amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}),
						longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Logger: log, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
					if err == nil {
						made <- c
					}
					return c, err
				}))
			}
			app := fx.New(append(opts, lifecyclefx.Module(lifecycle.Config{}))...)
			began := time.Now()
			if err := app.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			started := time.Since(began)
			close(made)
			n := 0
			for c := range made {
				n++
				if st := c.Stats(); !st.Ready {
					t.Errorf("%s is not ready: %s", c.Name(), st.Reason)
				}
			}
			began = time.Now()
			if err := app.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d containers: start %v, stop %v", n, started.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			if n != 20 {
				t.Errorf("%d containers", n)
			}
		})
	}
}
