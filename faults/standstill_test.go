package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-N02: a container whose work may not start takes nothing from a real RabbitMQ, at the
// start and over reconnects: every message stays ready there, a delivery limit of three
// survives five cuts, a stop starts nothing, and another instance gets everything.
func TestStandstillTakesNothingFromRabbitMQ(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]container.Config{
		"paused":     {StartPaused: true},
		"no permits": {Throttle: throttle.NewPermits(0)},
	} {
		t.Run(name, func(t *testing.T) {
			queueKinds(t, func(t *testing.T, args amqp091.Table) {
				rawURL, l := brokertest.AMQP(t), oracle.New()
				if args["x-queue-type"] == "quorum" {
					args = with(args, amqp091.Table{"x-delivery-limit": 3})
				}
				q := newRabbitQueue(t, rawURL, "orders", args)
				const total = 100
				q.publish(l, 0, total, 5)
				proxy, cutURL := proxied(t, rawURL)
				var started atomic.Int32
				cfg := cfg
				cfg.Reopen = container.Backoff{Initial: 50 * time.Millisecond, Max: 100 * time.Millisecond}
				c := consumeFrom(t, amqp.New(cutURL, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
					cfg, func(context.Context, *longshore.Delivery) error { started.Add(1); return nil })
				for range 5 {
					generation := c.Stats().Generation
					proxy.ResetAll()
					eventually(t, 20*time.Second, "it is connected again", func() bool {
						st := c.Stats()
						return st.Generation > generation && st.State != container.StateRecovering
					})
					holds(t, 300*time.Millisecond, "all messages stay ready at the broker", func() bool {
						ready, _ := q.depth()
						return ready == total
					})
				}
				if err := c.Stop(t.Context()); err != nil {
					t.Errorf("stop: %v", err)
				}
				if n := started.Load(); n != 0 {
					t.Errorf("%d handlers started", n)
				}
				consumeFrom(t, amqp.New(rawURL, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), container.Config{},
					func(_ context.Context, d *longshore.Delivery) error {
						l.Begin(string(d.Body), string(d.Key))(true)
						return nil
					})
				eventually(t, 20*time.Second, "another instance has handled all", func() bool { return l.Done() == total })
				check(t, l, oracle.Allow{})
			})
		})
	}
}
