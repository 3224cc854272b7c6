package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/sqs"
)

// F-E01, F-E03: a burst is worked off with more workers, one long handler is
// executed once, then they are few again; nobody's work is cut short.
func TestSQSWorkersFollowTheLoad(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		led := oracle.New()
		l.publish(led, name, 0, 400, 0)
		release := make(chan struct{})
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: container.Workers{Min: 1, Max: 16}, Autoscale: autoscale.Consecutive{}},
			func(_ context.Context, d *longshore.Delivery) error {
				end := led.Begin(string(d.Body), "")
				if string(d.Body) == "7" {
					<-release
				} else {
					<-time.After(20 * time.Millisecond)
				}
				end(true)
				return nil
			})
		watched := make(chan struct{})
		var out atomic.Int64
		go func() { // every sample is within the bounds
			defer close(watched)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					if st := c.Stats(); st.Busy > 16 || st.Target < st.Min || st.Target > st.Max {
						out.Add(1)
					}
				case <-release:
					return
				}
			}
		}()
		for range 100 {
			lo := 1 + rand.IntN(4)
			if err := c.Scale(lo, lo+rand.IntN(16-lo)); err != nil {
				l.t.Fatal(err)
			}
			<-time.After(5 * time.Millisecond)
		}
		eventually(l.t, 60*time.Second, "all but the long one are done", func() bool { return led.Done() == 399 })
		holds(l.t, 2*l.short(), "the long one runs once", func() bool { return led.Report().Calls == 400 && c.Stats().Busy == 1 })
		close(release)
		<-watched
		if n := out.Load(); n > 0 {
			l.t.Errorf("%d samples outside of the bounds", n)
		}
		l.idle(name)
		stopped(l.t, c)
		check(l.t, led, oracle.Allow{})
		if st := c.Stats(); st.Redelivered != 0 {
			l.t.Errorf("%d redelivered", st.Redelivered)
		}
	})
}

// short is a lease that passes in a test.
func (l *sqsLab) short() time.Duration { return 2 * time.Second }

// F-E05, F-E06: what is hidden is the window and not more, by default too and when
// it is changed; a second instance gets its share.
func TestSQSHoldsNoMoreThanItsWindow(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", map[string]string{"VisibilityTimeout": "30"})
		led := oracle.New()
		l.publish(led, name, 0, 300, 0)
		release := make(chan struct{})
		block := func(_ context.Context, d *longshore.Delivery) error {
			end := led.Begin(string(d.Body), "")
			<-release
			end(true)
			return nil
		}
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{}, block)
		within := func(c *container.ListenerContainer) bool {
			_, h := l.counts(name)
			return h <= c.Stats().Window
		}
		eventually(l.t, 20*time.Second, "its window is full", func() bool { st := c.Stats(); return st.InFlight == st.Window })
		holds(l.t, time.Second, "no more than the window is hidden", func() bool { return within(c) })
		if err := c.Scale(40, 40); err != nil {
			l.t.Fatal(err)
		}
		eventually(l.t, 20*time.Second, "the larger window is used", func() bool { return c.Stats().Busy == 40 })
		holds(l.t, time.Second, "no more than the larger window", func() bool { return within(c) })
		second := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{}, block)
		eventually(l.t, 20*time.Second, "the second has work", func() bool { return second.Stats().Busy > 0 })
		if err := c.Scale(2, 2); err != nil {
			l.t.Fatal(err)
		}
		close(release)
		eventually(l.t, 60*time.Second, "all are done", func() bool { return led.Done() == 300 })
		stopped(l.t, c)
		stopped(l.t, second)
		l.idle(name)
		check(l.t, led, oracle.Allow{})
	})
}

// F-E07, F-F04: one handler runs on, one message waits ten minutes for its retry;
// all others go by, with one worker left and on FIFO in other groups.
func TestSQSOneSlowOneHoldsNobodyUp(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		for _, suffix := range []string{"", ".fifo"} {
			name := l.queue(suffix, map[string]string{"VisibilityTimeout": "30"})
			led := oracle.New()
			groups := 0
			if suffix != "" {
				groups = 300
			}
			release := make(chan struct{})
			src := l.broker().Queue(name, sqs.QueueConfig{})
			c := consumeFrom(l.t, src, container.Config{Workers: fixed(2), Lookahead: 4, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard},
				Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: 5 * time.Second, Max: 5 * time.Second}}},
				func(_ context.Context, d *longshore.Delivery) error {
					end := led.Begin(string(d.Body), string(d.Key))
					switch string(d.Body) {
					case "0":
						<-release
					case "1":
						end(false)
						return longshore.Retry(errors.New("later"), 10*time.Minute)
					}
					end(true)
					return nil
				})
			l.publish(led, name, 0, 2, groups)
			eventually(l.t, 20*time.Second, "both have begun", func() bool { return led.Report().Calls == 2 })
			<-time.After(300 * time.Millisecond) // an empty queue
			l.publish(led, name, 2, 200, groups)
			eventually(l.t, 30*time.Second, "the others are done", func() bool { return led.Done() >= 200 })
			close(release)
			eventually(l.t, 20*time.Second, "the slow one is done", func() bool { return led.Done() == 201 })
			if n := led.Report().Calls; n > 203 && groups == 0 {
				l.t.Errorf("%d calls", n)
			}
			stopped(l.t, c)
		}
	})
}

// F-F01: permits come back from messages that never reach the handler.
func TestSQSPermitsComeBackFromEveryPath(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.queue("", nil), l.queue("", nil)
		led := oracle.New()
		l.publish(led, name, 0, 20, 0)
		limit := throttle.NewPermits(2)
		refuse := longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
			return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				switch n := len(d.Body) + int(d.Body[0]); n % 3 {
				case 0:
					panic("cannot be decoded")
				case 1:
					return longshore.Reject(errors.New("cannot be decoded"))
				}
				return next.Handle(ctx, d)
			})
		})
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Throttle: limit, Middleware: []longshore.Middleware{refuse},
			DeadLetter: container.DeadLetter{To: dead}, Redelivery: container.Redelivery{MaxAttempts: 1}}, record(led))
		eventually(l.t, 30*time.Second, "all have a verdict", func() bool { v, _ := l.counts(dead); return int(v)+led.Done() == 20 })
		l.idle(name)
		if st := limit.State(); st.InUse != 0 {
			l.t.Errorf("%+v when idle", st)
		}
		stopped(l.t, c)
	})
}

// F-F03, F-D02, F-F05: slow is not dead. Handlers run for several leases, a rate
// lets few start: nothing comes twice, and no attempt is used up.
func TestSQSSlowIsNotDead(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.redrive(3)
		led := oracle.New()
		l.publish(led, name, 0, 60, 0)
		limit := throttle.NewRate(3)
		src := l.broker().Queue(name, sqs.QueueConfig{VisibilityTimeout: l.short()})
		c := consumeFrom(l.t, src, container.Config{Workers: fixed(4), Throttle: limit}, func(_ context.Context, d *longshore.Delivery) error {
			end := led.Begin(string(d.Body), "")
			if d.Attempt != 1 || d.Origin.Redelivered {
				l.t.Errorf("%s: attempt %d, redelivered %t", d.Body, d.Attempt, d.Origin.Redelivered)
			}
			if d.Body[len(d.Body)-1] == '9' {
				<-time.After(5 * time.Second)
			}
			end(d.Owned())
			return nil
		})
		<-time.After(6 * time.Second)
		limit.SetRate(0)
		n := led.Report().Calls
		holds(l.t, 3*time.Second, "nothing starts at rate 0", func() bool { return led.Report().Calls <= n+1 })
		limit.Unlimit()
		eventually(l.t, 60*time.Second, "all are done", func() bool { return led.Done() == 60 })
		stopped(l.t, c)
		l.idle(name)
		if v, h := l.counts(dead); v+h != 0 {
			l.t.Errorf("%d dead-lettered", v+h)
		}
		check(l.t, led, oracle.Allow{})
	})
}

// F-F07: an open breaker stops the intake; nothing is counted or dead-lettered.
func TestSQSOpenBreakerStopsTheIntake(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.redrive(10)
		led := oracle.New()
		l.publish(led, name, 0, 300, 0)
		var up atomic.Bool
		b, err := breaker.New(breaker.Config{Consecutive: 3, OpenFor: 500 * time.Millisecond, OpenMax: time.Second, Ramp: -1, Logger: zap.NewNop(),
			Probe: func(context.Context) error {
				if !up.Load() {
					return errors.New("down")
				}
				return nil
			}})
		if err != nil {
			l.t.Fatal(err)
		}
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: fixed(4), Middleware: []longshore.Middleware{b}},
			func(_ context.Context, d *longshore.Delivery) error {
				end := led.Begin(string(d.Body), "")
				end(up.Load())
				if !up.Load() {
					return errors.New("down")
				}
				return nil
			})
		eventually(l.t, 20*time.Second, "it opens", func() bool { return b.Status().State == breaker.Open })
		n := led.Report().Calls
		holds(l.t, 2*time.Second, "nothing is handled while it is open", func() bool { return led.Report().Calls <= n+4 })
		up.Store(true)
		eventually(l.t, 60*time.Second, "all are done", func() bool { return led.Done() == 300 })
		l.idle(name)
		stopped(l.t, c)
		if v, h := l.counts(dead); v+h != 0 {
			l.t.Errorf("%d dead-lettered", v+h)
		}
	})
}

// F-D01: polls end by pause and resume while messages arrive.
func TestSQSPauseAndResumeLoseNothing(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		led := oracle.New()
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{}, record(led))
		for i := range 10 {
			c.Pause()
			l.publish(led, name, 2*i, 1, 0)
			c.Resume()
			l.publish(led, name, 2*i+1, 1, 0)
			<-time.After(time.Duration(i) * 30 * time.Millisecond)
		}
		// A poll that was cut off may hold one on ElasticMQ, each for its lease.
		eventually(l.t, 5*time.Second+5*l.limit(), "all are handled", func() bool { return led.Done() == 20 })
		stopped(l.t, c)
		l.idle(name)
		check(l.t, led, oracle.Allow{})
	})
}
