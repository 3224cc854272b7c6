package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// slow is a target that confirms late.
type slow struct {
	transport.Source
	by time.Duration
}

func (s *slow) Describe() transport.Description {
	return s.Source.(transport.Describer).Describe() //nolint:errcheck // it does
}

func (s *slow) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	p, self, err := s.Source.(transport.Outlet).Publisher(ctx) //nolint:errcheck // it has one
	return &lateConfirms{p, s.by}, self, err
}

type lateConfirms struct {
	transport.Publisher
	by time.Duration
}

func (p *lateConfirms) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	err := p.Publisher.Publish(ctx, dest, msgs...)
	select {
	case <-time.After(p.by):
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// queueAndTopic are a queue on RabbitMQ, with its management API if that is wanted, and a topic.
func queueAndTopic(t *testing.T, prefetch int, managed bool) (addr string, from *amqp.Queue, broker *kafka.Broker, topic string, to *kafka.Group) { //nolint:revive // both ends, with what made them
	t.Helper()
	addr, kafkas := brokertest.AMQP(t), brokertest.Kafka(t)
	url := queueOn(t, addr)
	_, name, _ := strings.Cut(url, "?queue=")
	cfg := amqp.Config{}
	if managed {
		cfg.Management = brokertest.Management(t, addr)
	}
	from = amqp.New(addr, cfg).Queue(name, amqp.QueueConfig{Prefetch: prefetch})
	_, topic, _ = strings.Cut(strings.TrimPrefix(topicOn(t, kafkas), "kafka://"), "/")
	topic, _, _ = strings.Cut(topic, "?")
	broker = kafka.New(kafkas, kafka.Config{})
	return addr, from, broker, topic, broker.Group(topic, []string{topic}, kafka.GroupConfig{SessionTimeout: 6 * time.Second})
}

// F-M03: finished means that nothing is left, with every prefetch, confirms that come late, a
// retry that waits in a delay queue, and a producer that comes in the last second; then the
// target has everything.
func TestFinishedMeansFinished(t *testing.T) {
	t.Parallel()
	for _, prefetch := range []int{1, 100, 5000} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			t.Parallel()
			managed := prefetch == 100 // then retries in delay queues are counted, and all counts may be 10 s old
			_, from, broker, topic, to := queueAndTopic(t, prefetch, managed)
			dir := t.TempDir()
			n, cfg := 200, container.Config{Workers: container.Workers{Min: 1, Max: 40}, Lookahead: 40}
			if prefetch == 1 {
				n, cfg = 20, container.Config{Workers: container.Workers{Max: 1}, Lookahead: -1}
			}
			publish(t, from, n)
			if managed {
				delayOne(t, from, 4*time.Second)
			}
			r := newRoute(t, bridge.Config{From: from, To: &slow{to, 200 * time.Millisecond}, Ledger: openLedger(t, dir), UntilEmpty: 2 * time.Second, Container: cfg})
			late := make(chan struct{})
			go func() {
				defer close(late)
				until(t, "the queue is nearly empty", func() bool { return r.Stats().Forwarded >= int64(n) })
				publishMore(t, from, n, 10)
			}()
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-late
			left, err := r.Remaining(t.Context())
			if err != nil || !left.Empty() || left.Source.Exact != managed {
				t.Errorf("%+v, %v", left, err)
			}
			if v := verified(t, dir, to); !v.OK() || v.Confirmed != n+10 || v.Reread != n+10 {
				t.Errorf("%v", v)
			}
			ends, err := broker.Ends(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, p := range ends[topic] {
				sum += p.Offset
			}
			if sum != int64(n+10) {
				t.Errorf("%d records at the target", sum)
			}
		})
	}
}

// delayOne gives the first message back to wait in a delay queue.
func delayOne(t *testing.T, from transport.Source, by time.Duration) {
	t.Helper()
	c, err := from.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := c.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ds[0].Nack(t.Context(), by), c.Flush(t.Context()), c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Rollback after new consumers have run: what they have done stays, also above the committed
// position; the rest goes back, none of it twice.
func TestRollbackTakesBackWhatIsNotDone(t *testing.T) {
	t.Parallel()
	addr, from, broker, topic, to := queueAndTopic(t, 0, false)
	group := topic + "-shop"
	ends, err := broker.Ends(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.SeedGroup(t.Context(), group, ends); err != nil {
		t.Fatal(err)
	}
	publish(t, from, 130)
	dir := t.TempDir()
	ledger := openLedger(t, dir)
	r := run(t, bridge.Config{Name: "orders", From: from, To: to, Ledger: ledger})
	until(t, "all are forwarded", func() bool { return r.Stats().Forwarded == 130 })
	stop(t, r)
	done := map[string]bool{}
	shop := broker.Group(group, []string{topic}, kafka.GroupConfig{SessionTimeout: 6 * time.Second})
	c, err := shop.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ds []*longshore.Delivery
	for len(ds) < 130 {
		more, err := c.Receive(t.Context(), 130)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, more...)
	}
	for i, d := range ds {
		if i%2 == 1 && len(done) < 60 { // so that most of what is done lies above the positions
			done[string(d.Body)] = true
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(c.Flush(t.Context()), c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	back := newRoute(t, bridge.Config{Name: "orders-back", From: shop, To: from, Ledger: ledger, Return: true, Alone: true, UntilEmpty: time.Second})
	if left, err := back.Remaining(t.Context()); err != nil || left.Source.Ready != 70 {
		t.Errorf("before: %+v, %v", left.Source, err)
	}
	if err := back.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := back.Stats(); s.Forwarded != 70 || s.Looped+s.Parked+s.Renamed != 0 {
		t.Errorf("%+v", s)
	}
	came := map[string]int{}
	take(t, addr+"?queue="+from.Describe().Name, func(d *longshore.Delivery) { came[string(d.Body)]++ }, func() bool { return len(came) == 70 })
	for body, n := range came {
		if n > 1 || done[body] {
			t.Errorf("message %s came back %d times, done %v", body, n, done[body])
		}
	}
	if v := verified(t, dir, nil); !v.OK() || v.Returned != 70 {
		t.Errorf("%v", v)
	}
}

// A queue that is deleted and a topic that is created again stop the route with what differs.
func TestADeletedQueueAndANewTopicStopTheRoute(t *testing.T) {
	t.Parallel()
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		addr, from, _, _, to := queueAndTopic(t, 0, false)
		publish(t, from, 10)
		r := newRoute(t, bridge.Config{From: from, To: to, UntilEmpty: time.Hour})
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		until(t, "all are moved", func() bool { return r.Stats().Forwarded == 10 })
		onQueue(t, addr, func(ch *amqp091.Channel) error {
			_, err := ch.QueueDelete(from.Describe().Name, false, false, false)
			return err
		})
		err := <-ended
		if s, ok := errors.AsType[*bridge.StoppedError](err); !ok || s.Reason != bridge.SourceGone || !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("%v", err)
		}
	})
	t.Run("topic", func(t *testing.T) {
		t.Parallel()
		_, from, _, topic, to := queueAndTopic(t, 0, false)
		publish(t, from, 10)
		r := newRoute(t, bridge.Config{From: from, To: to, UntilEmpty: time.Hour})
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		until(t, "all are moved", func() bool { return r.Stats().Forwarded == 10 && !r.Progress().At.IsZero() })
		cl, err := kgo.NewClient(kgo.SeedBrokers(brokertest.Kafka(t)...))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		adm := kadm.NewClient(cl)
		if _, err := adm.DeleteTopics(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		until(t, "it is made again", func() bool {
			resp, err := adm.CreateTopics(t.Context(), 3, 1, nil, topic)
			return err == nil && resp.Error() == nil
		})
		err = <-ended
		if s, ok := errors.AsType[*bridge.StoppedError](err); !ok || s.Reason != bridge.TargetRecreated && s.Reason != bridge.TargetGone {
			t.Errorf("%v", err)
		}
	})
}

func onQueue(t *testing.T, addr string, do func(ch *amqp091.Channel) error) {
	t.Helper()
	conn, err := amqp091.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(ch), conn.Close()); err != nil {
		t.Fatal(err)
	}
}

const holder = "BRIDGE_TEST_LOCK_HOLDER"

// TestRouteThatHoldsTheLock is the process that TestTheStandbyTakesOver kills.
func TestRouteThatHoldsTheLock(t *testing.T) {
	raw := os.Getenv(holder)
	if raw == "" {
		t.Skip("run by TestTheStandbyTakesOver")
	}
	way := strings.Split(raw, "\n")
	r, err := bridge.New(bridge.Config{Name: "orders", From: source(t, way[0]), To: source(t, way[1]), Container: container.Config{Logger: zap.NewNop()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// F-M02: of two instances of a route on an ordered queue one is active. The other stands by
// and takes over within seconds after kill -9, and order by key holds.
func TestTheStandbyTakesOver(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	a, b := queueOn(t, brokertest.AMQP(t)), topicOn(t, cluster.ListenAddrs())
	src := source(t, a)
	publish(t, src, 50)
	first := spawn(t, "TestRouteThatHoldsTheLock", holder+"="+a+"\n"+b)
	killed := atomic.Bool{}
	t.Cleanup(func() {
		if !killed.Load() {
			_ = first.Process.Kill()
			_ = first.Wait()
		}
	})
	consumed := func() bool {
		left, err := src.(transport.Remainder).Remaining(t.Context()) //nolint:errcheck // it is one
		return err == nil && left.Ready == 0
	}
	until(t, "the first instance moves messages", consumed)
	var downs atomic.Int64
	r := run(t, bridge.Config{Name: "orders", From: source(t, a), To: source(t, b),
		Container: container.Config{OnEvent: func(e container.Event) {
			if e.Kind == container.EventDown && errors.Is(e.Err, longshore.CodeExclusive) {
				downs.Add(1)
			}
		}}})
	until(t, "the second stands by", func() bool { return r.Progress().Standby && downs.Load() >= 2 })
	publishMore(t, src, 50, 50)
	until(t, "the first one moves more", consumed)
	if n := r.Stats().Forwarded; n != 0 {
		t.Errorf("the standby moved %d", n)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	killed.Store(true)
	at := time.Now()
	publishMore(t, src, 100, 100)
	until(t, "the second takes over", func() bool { return !r.Progress().Standby && r.Stats().Forwarded > 0 })
	if took := time.Since(at); took > 30*time.Second {
		t.Errorf("it took over after %s", took)
	}
	t.Logf("took over after %s", time.Since(at).Round(time.Millisecond))
	arrived(t, b, 200, 200, 0, true)
}
