package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/sqs"
)

func fixed(n int) container.Workers { return container.Workers{Min: n, Max: n} }

func stopped(t *testing.T, c *container.ListenerContainer) time.Duration {
	t.Helper()
	start := time.Now()
	if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Stop: %v", err)
	}
	return time.Since(start)
}

// F-A01: our own stop is neither success nor failure.
func TestSQSStopCancelsHandlersAndAllComesBack(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.redrive(5)
		led := oracle.New()
		l.publish(led, name, 0, 60, 0)
		var called atomic.Int64
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: fixed(10), DrainTimeout: 300 * time.Millisecond, CancelGrace: 10 * time.Second},
			func(ctx context.Context, d *longshore.Delivery) error {
				called.Add(1)
				end := led.Begin(string(d.Body), "")
				<-ctx.Done()
				end(false)
				return ctx.Err()
			})
		eventually(l.t, 20*time.Second, "handlers run", func() bool { return called.Load() >= 10 })
		_ = c.Stop(context.Background()) // it says what it gave up
		limit := 2 * time.Second
		if l.strict == nil {
			limit += l.lease // see sqsLab.lease
		}
		eventually(l.t, limit, "all are visible", func() bool { v, h := l.counts(name); return v == 60 && h == 0 })
		if v, h := l.counts(dead); v+h != 0 {
			l.t.Errorf("%d dead-lettered", v+h)
		}
		if n := deadLettered(c) + c.Stats().Acked; n != 0 {
			l.t.Errorf("%d settled", n)
		}
	})
}

// F-A02: what was done is settled, even while stopping.
func TestSQSDoneIsSettledWhileStopping(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, results := l.queue("", nil), l.queue("", nil)
		led := oracle.New()
		l.publish(led, name, 0, 1, 0)
		broker := l.broker()
		p, err := broker.Publisher(sqs.PublisherConfig{})
		if err != nil {
			l.t.Fatal(err)
		}
		began := make(chan struct{})
		src := broker.Queue(name, sqs.QueueConfig{})
		c := consumeFrom(l.t, src, container.Config{Workers: fixed(1), DrainTimeout: 20 * time.Second}, func(_ context.Context, d *longshore.Delivery) error {
			end := led.Begin(string(d.Body), "")
			close(began)
			<-time.After(1500 * time.Millisecond) // it does not look at its context
			err := p.Publish(context.Background(), results, &longshore.Message{Body: []byte("result")})
			end(err == nil)
			return err
		})
		<-began
		if took := stopped(l.t, c); took > 10*time.Second {
			l.t.Errorf("Stop took %v", took)
		}
		if err := p.Close(context.Background()); err != nil {
			l.t.Error(err)
		}
		if v, h := l.counts(results); v != 1 || h != 0 {
			l.t.Errorf("%d results, %d hidden", v, h)
		}
		if !l.empty(name) {
			l.t.Error("the source was not settled")
		}
		again := consumeFrom(l.t, src, container.Config{}, record(led))
		holds(l.t, time.Second, "nothing comes again", func() bool { return led.Report().Calls == 1 })
		stopped(l.t, again)
		check(l.t, led, oracle.Allow{})
	})
}

// F-A03, also with the link cut just before the stop: bounded, and named.
func TestSQSFewSettlementsAreFlushedAtStop(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", map[string]string{"VisibilityTimeout": "600"})
		broker := l.broker()
		for n := 1; n <= 3; n++ {
			led := oracle.New()
			l.publish(led, name, 0, n, 0)
			c := consumeFrom(l.t, broker.Queue(name, sqs.QueueConfig{SettleLinger: time.Hour}), container.Config{}, record(led))
			eventually(l.t, 20*time.Second, "all are handled", func() bool { return led.Done() == n })
			stopped(l.t, c)
			if !l.empty(name) {
				l.t.Errorf("%d done: something is left", n)
			}
			name = l.queue("", map[string]string{"VisibilityTimeout": "600"}) // without the polls of before
		}
		led := oracle.New()
		l.publish(led, name, 0, 5, 0)
		c := consumeFrom(l.t, broker.Queue(name, sqs.QueueConfig{SettleLinger: time.Hour}), container.Config{DrainTimeout: time.Second, CancelGrace: time.Second}, record(led))
		eventually(l.t, 20*time.Second, "all are handled", func() bool { return led.Done() == 5 })
		l.proxy.Refuse()
		l.proxy.CutAll()
		start := time.Now()
		if err := c.Stop(context.Background()); err == nil {
			l.t.Error("Stop returned nil with five deletes unsent")
		}
		if took := time.Since(start); took > 8*time.Second {
			l.t.Errorf("Stop took %v", took)
		}
		if r := c.Report(); r == nil || r.Unflushed != 5 {
			l.t.Errorf("report %+v, want 5 unflushed", r)
		}
	})
}

// F-A05: every way out gives back what is held: a panic, a context that ends.
func TestSQSEveryWayOutGivesBack(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue(".fifo", nil)
		led := oracle.New()
		l.publish(led, name, 0, 20, 5)
		src := l.broker().Queue(name, sqs.QueueConfig{})
		for range 2 {
			ctx, cancel := context.WithCancel(l.t.Context())
			var called atomic.Int64
			c := newContainer(l.t, src, container.Config{DrainTimeout: 200 * time.Millisecond, Redelivery: container.Redelivery{MaxAttempts: 100,
				Backoff: container.Backoff{Initial: 10 * time.Millisecond, Max: 20 * time.Millisecond}}}, func(ctx context.Context, d *longshore.Delivery) error {
				end := led.Begin(string(d.Body), string(d.Key))
				defer end(false)
				if called.Add(1)%2 == 0 {
					panic("out of the blue")
				}
				<-ctx.Done()
				return ctx.Err()
			})
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			eventually(l.t, 20*time.Second, "handlers run", func() bool { return called.Load() >= 2 })
			cancel()
			if err := <-ended; err != nil {
				l.t.Logf("Run: %v", err) // it names what was given up
			}
		}
		c := consumeFrom(l.t, src, container.Config{}, record(led))
		eventually(l.t, 2*time.Second+2*l.limit(), "the rest is handled by the next", func() bool { return led.Done() == 20 })
		stopped(l.t, c)
		l.idle(name)
		check(l.t, led, oracle.Allow{Ordered: true})
	})
}

// limit is how long ElasticMQ may keep a message from everybody.
func (l *sqsLab) limit() time.Duration {
	if l.strict == nil {
		return 3 * l.lease
	}
	return 10 * time.Second // of a slow machine; the lease is a minute
}

// F-A06: workers shrink and grow, intake stops and starts, under load.
func TestSQSWorkersComeAndGoUnderLoad(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		for _, suffix := range []string{"", ".fifo"} {
			name := l.queue(suffix, nil)
			led := oracle.New()
			groups := 0
			if suffix != "" {
				groups = 7
			}
			src := l.broker().Queue(name, sqs.QueueConfig{})
			c := consumeFrom(l.t, src, container.Config{Workers: fixed(5)}, record(led))
			for i := range 20 {
				l.publish(led, name, i*10, 10, groups)
				switch i % 4 {
				case 0:
					_ = c.Scale(1, 1) // bounds in order
				case 1:
					_ = c.Scale(5, 5)
				case 2:
					c.Pause()
				case 3:
					c.Resume()
				}
				if i%10 == 9 {
					stopped(l.t, c)
					c = consumeFrom(l.t, src, container.Config{Workers: fixed(5)}, record(led))
				}
			}
			eventually(l.t, 30*time.Second, "all are handled", func() bool { return led.Done() == 200 })
			stopped(l.t, c)
			l.idle(name)
			check(l.t, led, oracle.Allow{Ordered: groups > 0})
		}
	})
}

// F-A07: the edges of the life cycle, from several goroutines.
func TestSQSLifecycleEdges(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		broker := l.broker()
		src := broker.Queue(name, sqs.QueueConfig{})
		c := newContainer(l.t, src, container.Config{}, record(oracle.New()))
		stopped(l.t, c) // never started
		for range 3 {
			if err := c.Start(l.t.Context()); err != nil {
				l.t.Fatal(err)
			}
			stopped(l.t, c)
			stopped(l.t, c)
		}
		done := make(chan struct{})
		calls := []func(){func() { _ = c.Start(context.Background()) }, func() { _ = c.Stop(context.Background()) }, c.Pause, c.Resume,
			func() { _ = c.Scale(1, 3) }, func() { _ = c.Scale(2, 2) }} // none may hang, whatever it returns
		for _, call := range calls {
			go func() {
				for range 5 {
					call()
				}
				done <- struct{}{}
			}()
		}
		for range calls {
			<-done
		}
		_ = c.Stop(context.Background())
		missing := newContainer(l.t, broker.Queue("no-such-queue", sqs.QueueConfig{}), container.Config{}, record(oracle.New()))
		if err := missing.Start(l.t.Context()); !errors.Is(err, longshore.CodeNotFound) {
			l.t.Errorf("Start on a missing queue: %v", err)
		}
		stopped(l.t, missing)
		// ElasticMQ closes its side when the poll's 20 s are over.
		eventually(l.t, 30*time.Second, "all connections are closed", func() bool { return l.proxy.Live() == 0 })
	})
}
