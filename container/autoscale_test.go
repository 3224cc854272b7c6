package container_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/memory"
)

// scalings collects what a container says about its workers.
type scalings struct {
	mu   sync.Mutex
	list []container.Event
}

func (s *scalings) on(e container.Event) {
	if e.Kind == container.EventScaled {
		s.mu.Lock()
		s.list = append(s.list, e)
		s.mu.Unlock()
	}
}

func (s *scalings) all() []container.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]container.Event{}, s.list...)
}

// reached is when there were n workers for the first time; zero: never.
func (s *scalings) reached(n int) time.Time {
	for _, e := range s.all() {
		if e.To >= n {
			return e.Time
		}
	}
	return time.Time{}
}

// The burst of the simulation, in a real container: 10 ms handlers, then one message
// a second.
func TestBurstOfTheSimulation(t *testing.T) {
	for most, n := range map[int]int{30: 15_000, 200: 60_000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", numbered(n)...)
				var s scalings
				begin := time.Now()
				c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(10 * time.Millisecond); return nil }),
					container.Config{Workers: container.Workers{Min: 1, Max: most}, OnEvent: s.on})
				for b.Inspect("q").Acked < uint64(n) {
					wait(100 * time.Millisecond)
				}
				if at := s.reached(most * 9 / 10); at.IsZero() || at.Sub(begin) > 5*time.Second {
					t.Errorf("%d workers after %v", most*9/10, at.Sub(begin))
				}
				for range 60 {
					publish(t, b, "q", "trickle")
					wait(time.Second)
				}
				if st := c.Stats(); st.Target != 1 || st.Workers != 1 {
					t.Errorf("%d workers, target %d a minute after the burst", st.Workers, st.Target)
				}
				stop(t, c)
				wantHeld(t, b, "q", fmt.Sprintf("ready 0, unsettled 0, delayed 0, acked %d", n+60))
			})
		})
	}
}

// F-E02: the downstream lets in four at a time: no growth for five levels after
// settling, at most twice as many workers, and nearly the best throughput.
func TestDownstreamOfFour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(10_000)...)
		places := make(chan struct{}, 4)
		var s scalings
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			places <- struct{}{}
			wait(100 * time.Millisecond)
			<-places
			return nil
		}), container.Config{Workers: container.Workers{Min: 1, Max: 64}, OnEvent: s.on})
		wait(20 * time.Second) // settled
		before, most, sum := b.Inspect("q").Acked, 0, 0
		for range 120 {
			wait(time.Second)
			n := c.Stats().Target
			most, sum = max(most, n), sum+n
		}
		if done := b.Inspect("q").Acked - before; done < 120*40*95/100 {
			t.Errorf("%d handled of %d", done, 120*40)
		}
		if mean := float64(sum) / 120; most > 8 || mean < 3 || mean > 5 {
			t.Errorf("up to %d workers, %.1f in the mean, for a downstream of 4", most, mean)
		}
		if st := c.Stats().Scaling; st.Knee < 3 || st.Knee > 5 || st.Limit != autoscale.LimitKnee {
			t.Errorf("%+v", st)
		}
		stop(t, c)
	})
}

// F-E03: fewer workers under load: what runs goes on, no more than the new bound
// start from then on, and nothing comes twice.
func TestShrinkingUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(5000)...)
		var running, after, most, canceled, shrunk atomic.Int64
		h := func(ctx context.Context, d *longshore.Delivery) error {
			if d.Origin.Redelivered {
				t.Error("redelivered")
			}
			running.Add(1)
			late := shrunk.Load() > 0
			if late {
				most.Store(max(most.Load(), after.Add(1)))
			}
			wait(time.Second)
			if late {
				after.Add(-1)
			}
			running.Add(-1)
			if ctx.Err() != nil {
				canceled.Add(1)
			}
			return nil
		}
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(h), container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		wait(10500 * time.Millisecond)
		if n := running.Load(); n != 100 {
			t.Fatalf("%d calls run", n)
		}
		shrunk.Store(1)
		if err := c.Scale(5, 5); err != nil {
			t.Fatal(err)
		}
		wait(100 * time.Millisecond)
		if n := running.Load(); n != 100 {
			t.Errorf("%d of 100 calls still run", n)
		}
		for range 60 {
			wait(time.Second)
			if n := running.Load(); n > 5 {
				t.Fatalf("%d calls run with 5 workers", n)
			}
		}
		if n := most.Load(); n != 5 {
			t.Errorf("up to %d calls started after the change ran at once", n)
		}
		if n := canceled.Load(); n != 0 {
			t.Errorf("%d calls were cancelled", n)
		}
		if st := b.Inspect("q"); st.Unsettled > 5+8 {
			t.Errorf("%d held for 5 workers", st.Unsettled)
		}
		stop(t, c)
	})
}

// Spring's settings in a real container: up by one in ten seconds, down by one in
// about a minute, idle workers first, although every goroutine sees some of the trickle.
func TestConsecutiveGoesBackToMin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(6000)...)
		var s scalings
		begin := time.Now()
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(100 * time.Millisecond); return nil }),
			container.Config{Workers: container.Workers{Min: 1, Max: 10}, Autoscale: autoscale.Consecutive{}, OnEvent: s.on})
		for b.Inspect("q").Acked < 6000 {
			wait(100 * time.Millisecond)
		}
		if at := s.reached(10); at.IsZero() || at.Sub(begin) < 80*time.Second || at.Sub(begin) > 110*time.Second {
			t.Errorf("10 workers after %v", at.Sub(begin))
		}
		ended := time.Now()
		for range 640 {
			publish(t, b, "q", "trickle")
			wait(time.Second)
		}
		last := s.all()[len(s.all())-1]
		if took := last.Time.Sub(ended); last.To != 1 || last.Reason != autoscale.Idle || took < 540*time.Second || took > 620*time.Second {
			t.Errorf("%d workers, %q, after %v", last.To, last.Reason, took)
		}
		stop(t, c)
	})
}

// Failing work neither adds workers nor takes any away.
func TestConsecutiveDoesNotGrowByFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(2000)...)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(10 * time.Millisecond); return errBad }),
			container.Config{Autoscale: autoscale.Consecutive{}, Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
		wait(15 * time.Second)
		if st := c.Stats(); st.Target != 1 || st.Discarded < 1000 {
			t.Errorf("%d workers after %d failures", st.Target, st.Discarded)
		}
		stop(t, c)
	})
}

// Every decision is an event with its reason, a log line, and in Stats.
func TestDecisionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20_000)...)
		var s scalings
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(10 * time.Millisecond); return nil }),
			container.Config{Logger: zap.New(core), OnEvent: s.on})
		wait(5 * time.Second)
		if sc := c.Stats().Scaling; sc.Limit != autoscale.LimitMax || sc.To != 10 || sc.Reason != autoscale.Saturated {
			t.Errorf("%+v", sc)
		}
		wait(2 * time.Minute)
		stop(t, c)
		events, lines := s.all(), logs.FilterMessage("workers scaled").All()
		if len(events) == 0 || len(lines) != len(events) {
			t.Fatalf("%d events, %d lines", len(events), len(lines))
		}
		target, ups, downs := 1, int64(0), int64(0)
		for i, e := range events {
			f := lines[i].ContextMap()
			if e.From != target || e.Reason == "" || fmt.Sprint(f["from"], f["to"], f["reason"]) != fmt.Sprint(int64(e.From), int64(e.To), e.Reason) {
				t.Errorf("%d → %d %q after %d, logged as %v", e.From, e.To, e.Reason, target, f)
			}
			if target = e.To; e.To > e.From {
				ups++
			} else {
				downs++
			}
		}
		if sc := c.Stats().Scaling; target != 1 || sc.Ups != ups || sc.Downs != downs || sc.Reason != autoscale.Idle {
			t.Errorf("%d workers at last; %+v", target, sc)
		}
	})
}

// A handler that waits in Delivery.Wait is not busy: it neither saturates the
// workers nor stalls them.
func TestWaitingIsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(500)...)
		h := func(ctx context.Context, d *longshore.Delivery) error {
			return d.Wait(ctx, func(context.Context) error { wait(500 * time.Millisecond); return nil })
		}
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(h), container.Config{Workers: container.Workers{Min: 2, Max: 50}})
		wait(30 * time.Second)
		if st := c.Stats(); st.Target != 2 || st.Capacity > 0.01 {
			t.Errorf("%d workers, capacity %v, by handlers that only wait", st.Target, st.Capacity)
		}
		stop(t, c)
	})
}

// A rate is a ceiling like permits: a backlog behind it asks for no workers.
func TestRateLimitsTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(50_000)...)
		g := newGate(-1, 20*time.Millisecond) // 50 a second
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(40 * time.Millisecond); return nil }),
			container.Config{Throttle: g, Workers: container.Workers{Min: 1, Max: 100}})
		wait(time.Minute)
		if n := c.Stats().Target; n < 2 || n > 4 {
			t.Errorf("%d workers for 50/s of 40 ms", n)
		}
		stop(t, c)
	})
}

// Where receives take as long as handlers, more is held, so that workers are
// saturated by what is there and grow at once: the SQS row of the simulation.
func TestBurstByPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20_000)...)
		b.Delay(memory.OpReceive, 12*time.Millisecond)
		var s scalings
		begin := time.Now()
		c := start(t, b.Queue("q", memory.QueueConfig{Pull: true}), handle(func(*longshore.Delivery) error { wait(20 * time.Millisecond); return nil }),
			container.Config{Workers: container.Workers{Min: 1, Max: 20}, OnEvent: s.on})
		wait(10 * time.Second)
		if at := s.reached(18); at.IsZero() || at.Sub(begin) > 5*time.Second {
			t.Errorf("18 workers after %v", at.Sub(begin))
		}
		stop(t, c)
	})
}

// script is a policy of a user, by a function.
type script func(s autoscale.Sample) autoscale.Decision

func (script) Check() error                                 { return nil }
func (p script) New() autoscale.Scaler                      { return p }
func (p script) Next(s autoscale.Sample) autoscale.Decision { return p(s) }

// A user's policy may ask for anything and panic: the bounds hold, work goes on.
func TestPolicyOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		asked := []int{7, -5, 1 << 40, 3}
		var calls, notices atomic.Int64
		p := script(func(s autoscale.Sample) autoscale.Decision {
			i := int(calls.Add(1)) - 1
			if i >= len(asked) {
				panic("out of ideas")
			}
			if s.Dt != 500*time.Millisecond || s.Min != 2 || s.Max != 20 || s.Lanes != -1 || s.Permits != -1 || s.Paused {
				t.Errorf("%+v", s)
			}
			return autoscale.Decision{Target: asked[i], Reason: "script", Limit: "mood"}
		})
		var s scalings
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{Workers: container.Workers{Min: 2, Max: 20}, Autoscale: p,
			OnEvent: func(e container.Event) {
				s.on(e)
				if e.Kind == container.EventNotice && longshore.CodeOf(e.Err) == longshore.CodePanic {
					notices.Add(1)
				}
			}})
		wait(2100 * time.Millisecond)
		if sc := c.Stats().Scaling; sc.Limit != "mood" || sc.To != 3 {
			t.Errorf("%+v", sc)
		}
		wait(3 * time.Second)
		publish(t, b, "q", "m")
		wait(time.Second)
		got := []int{}
		for _, e := range s.all() {
			got = append(got, e.To)
		}
		if fmt.Sprint(got) != "[7 2 20 3]" || c.Stats().Target != 3 || c.Stats().Acked != 1 || notices.Load() == 0 {
			t.Errorf("%v, target %d, %d acked, %d notices", got, c.Stats().Target, c.Stats().Acked, notices.Load())
		}
		stop(t, c)
	})
}

// Permits are a ceiling, at once on the way down; what they open is grown into by
// doubling, each half second.
func TestWorkersFollowPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(60_000)...)
		g := newGate(5, 0)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(20 * time.Millisecond); return nil }),
			container.Config{Throttle: g, Workers: container.Workers{Min: 1, Max: 30}})
		for _, step := range []struct{ permits, atLeast, atMost int }{{5, 4, 5}, {20, 18, 20}, {3, 3, 3}, {25, 12, 25}} {
			g.set(step.permits)
			wait(time.Second)
			if step.permits == 5 {
				wait(4 * time.Second)
			}
			if n := c.Stats().Target; n > step.atMost {
				t.Errorf("%d workers for %d permits", n, step.permits)
			}
			for range 80 { // up is an experiment, and may take a second look
				if c.Stats().Target >= step.atLeast {
					break
				}
				wait(100 * time.Millisecond)
			}
			if n := c.Stats().Target; n < step.atLeast || n > step.atMost {
				t.Errorf("%d workers for %d permits", n, step.permits)
			}
			wait(5 * time.Second)
		}
		stop(t, c)
	})
}

// F-E02: three keys have work: three workers.
func TestWorkersFollowKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		bodies := make([]string, 6000)
		for i := range bodies {
			bodies[i] = fmt.Sprintf("k%d:%d", i%3, i)
		}
		publish(t, b, "q", bodies...)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(10 * time.Millisecond); return nil }),
			container.Config{Order: container.ByKey, Workers: container.Workers{Min: 1, Max: 30}})
		wait(10 * time.Second)
		if st := c.Stats(); st.Target != 3 || st.Scaling.Limit != autoscale.LimitLanes {
			t.Errorf("%d workers for three keys, %+v", st.Target, st.Scaling)
		}
		stop(t, c)
	})
}
