package faults

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// queueKinds runs a test on a classic and on a quorum queue.
func queueKinds(t *testing.T, f func(t *testing.T, args amqp091.Table)) {
	for name, args := range map[string]amqp091.Table{"classic": {}, "quorum": {"x-queue-type": "quorum"}} {
		t.Run(name, func(t *testing.T) { f(t, args) })
	}
}

func with(args amqp091.Table, more amqp091.Table) amqp091.Table {
	out := amqp091.Table{}
	for _, t := range []amqp091.Table{args, more} {
		for k, v := range t {
			out[k] = v
		}
	}
	return out
}

// F-A01: handlers that our own stop cancelled return the cancellation.
func TestStopThatCancelsHandlersIsNeitherSuccessNorFailure(t *testing.T) {
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url := brokertest.AMQP(t)
		path := ledgerFile(t)
		l, err := oracle.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		q := newRabbitQueue(t, url, "orders", with(args, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"}))
		dlq := q.also("orders.dlq", nil)
		q.publish(l, 0, 100, 100)
		c := startChild(t, childConfig{url: url, queue: "orders", ledger: path, work: "block", workers: 10, drain: time.Second})
		eventually(t, 10*time.Second, "10 handlers run", func() bool { return readLedger(t, path).Report().Calls >= 10 })
		if code := c.terminate(); code != 0 {
			t.Errorf("exit code %d: handlers that end with their context leave nothing behind", code)
		}
		eventually(t, 5*time.Second, "all 100 are back in the queue", func() bool { ready, consumers := q.depth(); return ready == 100 && consumers == 0 })
		if ready, _ := dlq.depth(); ready != 0 {
			t.Errorf("%d dead-lettered by our own stop", ready)
		}
	})
}

// F-A02: a handler that ignores its context and succeeds while the stop is under way.
func TestWorkDoneWhileStoppingIsSettledOnce(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		q.publish(l, 0, 10, 10)
		started := make(chan struct{}, 10)
		c := consume(t, url, "orders", container.Config{Workers: container.Workers{Min: 10, Max: 10}, DrainTimeout: 10 * time.Second},
			func(_ context.Context, d *longshore.Delivery) error {
				end := l.Begin(string(d.Body), string(d.Key))
				started <- struct{}{}
				<-time.After(2 * time.Second)
				end(true)
				return nil
			})
		for range 10 {
			<-started
		}
		begin := time.Now()
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("stop took %v for handlers of 2 s", took)
		}
		if ready, _ := q.depth(); ready != 0 {
			t.Errorf("%d came back although they were done", ready)
		}
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// F-A03: fewer done than the batch threshold, and a linger that never ends.
func TestAcksBelowTheBatchThresholdAreFlushedAtStop(t *testing.T) {
	url := brokertest.AMQP(t)
	for n := 1; n <= 9; n++ {
		l, name := oracle.New(), "orders-"+strconv.Itoa(n)
		q := newRabbitQueue(t, url, name, nil)
		q.publish(l, 0, n, 0)
		c := consumeFrom(t, amqp.New(url, amqp.Config{}).Queue(name, amqp.QueueConfig{SettleLinger: time.Hour, Prefetch: 100}), container.Config{}, record(l))
		eventually(t, 10*time.Second, "all handled", func() bool { return l.Done() == n })
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("%d: stop: %v", n, err)
		}
		if r := c.Report(); r.Unflushed != 0 {
			t.Errorf("%d: unflushed %d", n, r.Unflushed)
		}
		if ready, _ := q.depth(); ready != 0 {
			t.Errorf("%d: %d came back", n, ready)
		}
	}
}

// F-A03: the same with the broker out of reach just before the stop.
func TestUnflushedAcksAreReportedWhenTheBrokerIsGone(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	q.publish(l, 0, 7, 0)
	proxy, purl := proxied(t, url)
	c := consumeFrom(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{SettleLinger: time.Hour, Prefetch: 100}),
		container.Config{DrainTimeout: 2 * time.Second}, record(l))
	eventually(t, 10*time.Second, "all handled", func() bool { return l.Done() == 7 })
	proxy.BlackHole(true)
	begin := time.Now()
	err := c.Stop(t.Context())
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stop took %v with a budget of 2 s + 2 s", took)
	}
	if r := c.Report(); r.Unflushed != 7 || err == nil {
		t.Errorf("unflushed %d, error %v, want 7 and an error", r.Unflushed, err)
	}
}

// F-A06: deliveries between cancel and its confirmation, while workers come and go.
func TestNothingIsLostOverScalingAndRestarts(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		q := newRabbitQueue(t, url, "orders", args)
		const total = 4000
		var handled atomic.Int64
		c := newContainer(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), container.Config{Workers: container.Workers{Min: 1, Max: 5}, Order: container.ByKey},
			func(ctx context.Context, d *longshore.Delivery) error {
				handled.Add(1)
				end := l.Begin(string(d.Body), string(d.Key))
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					end(false)
					return ctx.Err()
				}
				end(true)
				return nil
			})
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			q.publish(l, i*total/20, total/20, 37)
			if err := errors.Join(c.Scale(5, 5), c.Scale(1, 1), c.Scale(1, 5)); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := errors.Join(c.Stop(t.Context()), c.Start(t.Context())); err != nil {
					t.Fatalf("restart %d: %v", i, err)
				}
			}
		}
		eventually(t, 60*time.Second, "all handled", func() bool { return l.Done() == total })
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if ready, consumers := q.depth(); ready != 0 || consumers != 0 {
			t.Errorf("ready %d, consumers %d after the end", ready, consumers)
		}
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// A crash: whatever was not settled comes back, nothing else does.
func TestKilledConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, path := brokertest.AMQP(t), ledgerFile(t)
		l, err := oracle.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		q := newRabbitQueue(t, url, "orders", args)
		q.publish(l, 0, 2000, 50)
		cfg := childConfig{url: url, queue: "orders", ledger: path, work: "5ms", workers: 10, drain: 5 * time.Second}
		for range 3 {
			c := startChild(t, cfg)
			before := readLedger(t, path).Done()
			eventually(t, 20*time.Second, "some were handled", func() bool { return readLedger(t, path).Done() > before+200 })
			c.kill()
		}
		c := startChild(t, cfg)
		eventually(t, 60*time.Second, "all handled", func() bool { return readLedger(t, path).Done() == 2000 })
		if code := c.terminate(); code != 0 {
			t.Errorf("exit code %d after a clean drain", code)
		}
		if ready, _ := q.depth(); ready != 0 {
			t.Errorf("%d are left", ready)
		}
		// What was held at a kill may run again: the window is workers plus lookahead.
		check(t, readLedger(t, path), oracle.Allow{Twice: 3 * 2 * 20})
	})
}

func record(l *oracle.Ledger) longshore.HandlerFunc {
	return func(_ context.Context, d *longshore.Delivery) error {
		l.Begin(string(d.Body), string(d.Key))(true)
		return nil
	}
}

func newContainer(t *testing.T, src transport.Source, cfg container.Config, h longshore.HandlerFunc) *container.ListenerContainer {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	c, err := container.New(src, h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) }) // its result is the test's business where it matters
	return c
}

func consumeFrom(t *testing.T, src transport.Source, cfg container.Config, h longshore.HandlerFunc) *container.ListenerContainer {
	t.Helper()
	c := newContainer(t, src, cfg, h)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func consume(t *testing.T, url, queue string, cfg container.Config, h longshore.HandlerFunc) *container.ListenerContainer {
	t.Helper()
	return consumeFrom(t, amqp.New(url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), cfg, h)
}

// proxied puts a proxy in front of a broker and returns the URL through it.
func proxied(t *testing.T, url string) (*faultproxy.Proxy, string) {
	t.Helper()
	uri, err := amqp091.ParseURI(url)
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, uri.Host+":"+strconv.Itoa(uri.Port))
	return p, throughProxy(t, url, p.Addr())
}

func total(byCode map[longshore.Code]int64) (n int64) {
	for _, k := range byCode {
		n += k
	}
	return n
}

func deadLettered(c *container.ListenerContainer) int64 { return total(c.Stats().DeadLetters) }
