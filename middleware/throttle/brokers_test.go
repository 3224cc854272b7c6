package throttle_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// Permits 100 → 5 under load on brokers: running work is left alone, then never
// more than 5, and nothing is redelivered for it.
func TestShrinkOnBrokers(t *testing.T) {
	t.Parallel()
	queue := func(url string) transport.Source {
		return amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	}
	group := func(t *testing.T, addrs []string) transport.Source {
		name := brokertest.Name(t, "shrink")
		return kafka.New(addrs, kafka.Config{}).Group(name, []string{name}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 4, Replicas: 1}})
	}
	t.Run("amqptest", func(t *testing.T) { t.Parallel(); shrink(t, queue(amqptest.New(t, amqptest.Config{}).URL)) })
	t.Run("rabbitmq", func(t *testing.T) { t.Parallel(); shrink(t, queue(brokertest.AMQP(t))) })
	t.Run("kafka", func(t *testing.T) { t.Parallel(); shrink(t, group(t, brokertest.Kafka(t))) })
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		k, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		shrink(t, group(t, k.ListenAddrs()))
	})
}

func shrink(t *testing.T, src transport.Source) {
	open(t, src)
	send(t, src, keyed(2000, 500)...)
	limit := throttle.NewPermits(100)
	var g gauge
	var cut, again atomic.Int32
	first := make(chan struct{}) // lets the first hundred go
	c := start(t, src, handle(func(ctx context.Context, d *longshore.Delivery) error {
		if d.Attempt > 1 || d.Origin.Redelivered {
			again.Add(1)
		}
		g.enter()
		defer g.leave()
		select {
		case <-first:
		case <-ctx.Done():
			cut.Add(1)
		}
		return nil
	}), container.Config{Throttle: limit, Workers: container.Workers{Min: 200, Max: 200}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
	eventually(t, "100 run", func() bool { now, _, _ := g.read(); return now == 100 })
	limit.SetPermits(5)
	eventually(t, "a moment", after(100*time.Millisecond))
	if now, _, total := g.read(); now != 100 || total != 100 {
		t.Errorf("%d run of %d after the cut", now, total)
	}
	close(first)
	eventually(t, "the first are through", func() bool { now, _, total := g.read(); return now <= 5 && total > 100 })
	g.read()
	eventually(t, "all handled", func() bool {
		now, most, total := g.read()
		if most > 5 {
			t.Fatalf("%d at once with 5 permits", most)
		}
		return total == 2000 && now == 0
	})
	stop(t, c)
	if cut.Load() != 0 || again.Load() != 0 {
		t.Errorf("%d interrupted, %d redelivered", cut.Load(), again.Load())
	}
}

// F-F03: one start in ten minutes and permits of 0 outlast the session of a Kafka
// member many times over: it stays a member, and nothing is delivered again.
func TestSlowIsNotDeadOnKafka(t *testing.T) {
	t.Parallel()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	for name, limit := range map[string]*throttle.Limiter{"rate": throttle.NewRate(1.0 / 600), "permits": throttle.NewPermits(0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := kafka.New(k.ListenAddrs(), kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(200 * time.Millisecond)}}).Group(name, []string{"orders"}, kafka.GroupConfig{SessionTimeout: 1500 * time.Millisecond})
			var again, handled atomic.Int32
			c := start(t, src, handle(func(_ context.Context, d *longshore.Delivery) error {
				handled.Add(1)
				if d.Attempt > 1 || d.Origin.Redelivered {
					again.Add(1)
				}
				return nil
			}), container.Config{Throttle: limit, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
			send(t, src, keyed(50, 10)...)
			eventually(t, "sessions pass", after(4*time.Second))
			if st := c.Stats(); st.Generation != 1 || st.Lost != 0 || handled.Load() > 1 {
				t.Errorf("generation %d, %d lost, %d handled", st.Generation, st.Lost, handled.Load())
			}
			limit.Unlimit()
			eventually(t, "all handled", func() bool { return handled.Load() >= 50 })
			if again.Load() != 0 {
				t.Errorf("%s redelivered", fmt.Sprint(again.Load()))
			}
			stop(t, c)
		})
	}
}
