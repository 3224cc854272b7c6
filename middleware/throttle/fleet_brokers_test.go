package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
)

// controls are the control topics of the brokers; each call of source is an
// instance with connections of its own.
func controls(t *testing.T, f func(t *testing.T, cfg throttle.FleetConfig, source func() transport.Source)) {
	fanout := func(url string) func() transport.Source {
		return func() transport.Source {
			return amqp.New(url, amqp.Config{}).Broadcast("throttle", amqp.BroadcastConfig{Kind: amqp.Fanout})
		}
	}
	topic := func(t *testing.T, addrs []string) func() transport.Source {
		name := brokertest.Name(t, "throttle")
		return func() transport.Source {
			return kafka.New(addrs, kafka.Config{}).Broadcast([]string{name}, kafka.BroadcastConfig{Declare: kafka.Declare{Partitions: 1, Replicas: 1}})
		}
	}
	cfg := throttle.FleetConfig{Scope: "shop", Keys: keys("k1"), RequireSnapshot: true}
	t.Run("amqptest", func(t *testing.T) {
		t.Parallel()
		f(t, cfg, fanout(amqptest.New(t, amqptest.Config{}).URL))
	})
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		f(t, cfg, topic(t, c.ListenAddrs()))
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		f(t, cfg, fanout(brokertest.AMQP(t)))
	})
	t.Run("rabbitmq stream", func(t *testing.T) {
		t.Parallel()
		url := brokertest.AMQP(t)
		stream := cfg
		stream.Stream = true
		f(t, stream, func() transport.Source {
			return amqp.New(url, amqp.Config{}).Queue("throttle", amqp.QueueConfig{
				Declare:   amqp.Declare{Type: "stream", Arguments: amqp091.Table{"x-max-age": "24h"}},
				Arguments: amqp091.Table{"x-stream-offset": "first"},
			})
		})
	})
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		f(t, cfg, topic(t, brokertest.Kafka(t)))
	})
}

// A change is in force on three instances, each with connections of its own, and on
// a fourth that comes later. On real brokers the first takes less than a second.
func TestFleetOnBrokers(t *testing.T) {
	t.Parallel()
	controls(t, func(t *testing.T, cfg throttle.FleetConfig, source func() transport.Source) {
		var ins []*instance
		for i := range 3 {
			ins = append(ins, join(t, source(), fmt.Sprint("i", i), cfg))
		}
		for i, n := range []int{5, 3, 12} {
			res := issue(t, ins[i], throttle.Directive{Permits: ptr(n), Issuer: "anna"})
			t.Logf("%d permits on %v after %v", n, res.Obeyed, res.Took)
			if fmt.Sprint(res.Obeyed) != "[i0 i1 i2]" {
				t.Errorf("%d permits: %+v", n, res)
			}
			for _, in := range ins {
				if in.permits() != n {
					t.Errorf("%s has %d permits, not %d", in.Instance(), in.permits(), n)
				}
			}
		}
		late := join(t, source(), "late", cfg)
		eventually(t, "12 permits everywhere", func() bool {
			for _, in := range append(ins, late) {
				if in.permits() != 12 {
					return false
				}
			}
			return true
		})
		issue(t, late, throttle.Directive{Permits: ptr(10), Share: throttle.Total})
		sum := 0
		for _, in := range append(ins, late) {
			sum += in.permits()
			if n := in.events.kinds(throttle.FleetRefused); len(n) > 0 && !onlyStale(n) {
				t.Errorf("%s refused %v", in.Instance(), n)
			}
		}
		if sum != 10 {
			t.Errorf("10 shared by four are %d", sum)
		}
	})
}

// onlyStale: a topic that keeps everything tells a newcomer also what was before.
func onlyStale(refused []string) bool {
	for _, r := range refused {
		if r != "stale" && r != "expired" {
			return false
		}
	}
	return true
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not seen: %s", what)
		}
	}
}

// The control broker goes away for a moment: what is in force stays, and what is
// issued afterwards comes.
func TestControlConnectionIsLost(t *testing.T) {
	t.Parallel()
	srv := amqptest.New(t, amqptest.Config{})
	in := join(t, amqp.New(srv.URL, amqp.Config{}).Broadcast("throttle", amqp.BroadcastConfig{Kind: amqp.Fanout}), "a", throttle.FleetConfig{})
	issue(t, in, throttle.Directive{Permits: ptr(4)})
	srv.Cut(nil)
	eventually(t, "connection lost", func() bool { return len(in.events.kinds(throttle.FleetLost)) > 0 })
	if in.permits() != 4 {
		t.Errorf("%d permits without the broker", in.permits())
	}
	eventually(t, "connected again", func() bool { return in.Status().Connected })
	var err error
	eventually(t, "published again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = in.Issue(ctx, throttle.Directive{Permits: ptr(2)})
		return err == nil && in.permits() == 2
	})
}

// What cannot reach every instance is refused, with what to do instead.
func TestSourcesThatCannotBroadcast(t *testing.T) {
	for name, src := range map[string]transport.Source{
		"SQS":      sqs.New(sqs.Config{Region: "eu-west-1"}).Queue("control", sqs.QueueConfig{}),
		"RabbitMQ": amqp.New("amqp://localhost", amqp.Config{}).Queue("control", amqp.QueueConfig{}),
		"Kafka":    kafka.New([]string{"localhost"}, kafka.Config{}).Group("g", []string{"control"}, kafka.GroupConfig{}),
		"memory":   memory.New(memory.Config{}).Queue("control", memory.QueueConfig{}),
	} {
		if _, err := throttle.NewFleet(src, throttle.FleetConfig{}); !errors.Is(err, longshore.CodeUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
