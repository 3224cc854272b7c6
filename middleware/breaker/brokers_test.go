package breaker_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
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

// outage lets a dependency fail and come back under a container, and wants that
// nobody consumes meanwhile, nothing dies and everything is handled.
func outage(t *testing.T, src transport.Source, gone func() bool) {
	publish(t, src, 1000)
	l := newLedger()
	b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 300 * time.Millisecond, OpenMax: 300 * time.Millisecond,
		Consecutive: 4, Probe: l.ping, Ramp: time.Second})
	c := start(t, src, l.pay(time.Millisecond), container.Config{Middleware: []longshore.Middleware{b},
		Workers: container.Workers{Min: 4, Max: 4}, DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 5}})
	eventually(t, "some handled", func() bool { _, _, n := l.read(); return n > 50 })
	l.set(true)
	eventually(t, "open", func() bool { return b.Status().State == breaker.Open })
	eventually(t, "nobody consumes", gone)
	calls, _, before := l.read()
	eventually(t, "asked twice", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.asked > 2 })
	after, _, handled := l.read()
	if !gone() || handled != before || after != calls {
		t.Errorf("consumes: %v, %d handled and %d called while it is open", !gone(), handled-before, after-calls)
	}
	if st := c.Stats(); st.Ready || !st.Live {
		t.Errorf("%+v", st)
	}
	l.set(false)
	eventually(t, "all handled", func() bool { _, _, n := l.read(); return n == 1000 })
	if gone() {
		t.Error("nobody consumes afterwards")
	}
	if st := c.Stats(); len(st.DeadLetters) != 0 || st.Rejected != 0 {
		t.Errorf("dead: %v", st.DeadLetters)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
	for n := range l.attempts {
		if n > 2 {
			t.Errorf("attempts %v", l.attempts)
		}
	}
}

// F-F07: on RabbitMQ the broker's own view shows no consumer while the breaker is
// open.
func TestNoConsumerOnRabbitMQ(t *testing.T) {
	t.Parallel()
	for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			srv := amqptest.New(t, amqptest.Config{})
			src := amqp.New(srv.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: kind}})
			declare(t, src)
			outage(t, src, func() bool {
				q, _ := srv.Queue("/", "orders")
				return len(q.Consumers) == 0
			})
			if q, _ := srv.Queue("/", "dead"); q.Ready != 0 {
				t.Errorf("%d dead", q.Ready)
			}
		})
		t.Run(string(kind)+" on RabbitMQ", func(t *testing.T) {
			t.Parallel()
			url := brokertest.AMQP(t)
			if os.Getenv("RABBITMQCTL") == "" {
				t.Fatal("set RABBITMQCTL to a rabbitmqctl that reaches the broker, or use `make test`")
			}
			src := amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: kind}})
			declare(t, src)
			outage(t, src, func() bool { return consumers(t, url) == 0 })
		})
	}
}

// F-F07 on Kafka and SQS: nothing is fetched while it is open.
func TestNothingIsFetchedElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		src := &counted{Source: kafka.New(k.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{})}
		outage(t, src, src.gone)
	})
	t.Run("sqs", func(t *testing.T) {
		t.Parallel()
		src := &counted{Source: sqs.New(sqstest.New(t).Config()).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{"VisibilityTimeout": "30"}}})}
		declare(t, src)
		outage(t, src, src.gone)
	})
}

// declare opens and closes a source, so that its queue exists.
func declare(t *testing.T, src transport.Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := src.Open(ctx, transport.OpenOptions{DeadLetter: "dead"})
	if err != nil {
		t.Fatal(fmt.Errorf("declaring: %w", err))
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
