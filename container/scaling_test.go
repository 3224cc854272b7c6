package container_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-E01: work in progress is load: one execution and one worker until it ends.
func TestWorkInProgressIsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "long")
		var runs atomic.Int32
		var ended atomic.Bool
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			runs.Add(1)
			wait(time.Minute)
			ended.Store(true)
			return nil
		}), container.Config{Autoscale: autoscale.Adaptive{Hold: 5 * time.Second}})
		for range 59 {
			wait(time.Second)
			if st := c.Stats(); st.Workers < 1 || st.Busy != 1 || st.Target != 1 || ended.Load() {
				t.Fatalf("workers %d, busy %d, target %d", st.Workers, st.Busy, st.Target)
			}
		}
		wait(2 * time.Second)
		stop(t, c)
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// F-E02: only one of eight partitions has a backlog: more workers would not help.
func TestOnePartitionNeedsOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		for i := range 2000 {
			publish(t, b, "q", fmt.Sprintf("same:%d", i))
		}
		var most atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Partitions: 8}), handle(func(*longshore.Delivery) error { wait(10 * time.Millisecond); return nil }),
			container.Config{Order: container.ByPartition, Workers: container.Workers{Max: 30}, OnEvent: func(e container.Event) {
				if e.Kind == container.EventScaled {
					most.Store(max(most.Load(), int32(e.To)))
				}
			}})
		wait(time.Minute)
		stop(t, c)
		if most.Load() > 1 {
			t.Errorf("grew to %d workers for one partition", most.Load())
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 2000")
	})
}

// F-E03: up with a burst, down again afterwards, nothing redelivered.
func TestBurstGrowsTheWorkersAndTheyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(10_000)...)
		var reached atomic.Int64
		begin := time.Now()
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if d.Origin.Redelivered {
				t.Error("redelivered")
			}
			wait(10 * time.Millisecond)
			return nil
		}), container.Config{Workers: container.Workers{Min: 1, Max: 30}, OnEvent: func(e container.Event) {
			if e.Kind == container.EventScaled && e.To == 30 {
				reached.CompareAndSwap(0, int64(time.Since(begin)))
			}
		}})
		wait(10 * time.Second)
		if at := time.Duration(reached.Load()); at == 0 || at > 5*time.Second {
			t.Errorf("30 workers after %v", at)
		}
		for range 120 {
			publish(t, b, "q", "trickle")
			wait(time.Second)
		}
		if st := c.Stats(); st.Workers != 1 || st.Target != 1 {
			t.Errorf("%d workers, target %d", st.Workers, st.Target)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 10120")
	})
}

// F-E03: the bounds hold in every sample while they change at random under load,
// and a busy worker is never cut off.
func TestBoundsHoldWhileTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20_000)...)
		rnd := rand.New(rand.NewPCG(3, 4))
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(7 * time.Millisecond); return nil }), container.Config{})
		for range 1000 {
			lo := 1 + rnd.IntN(10)
			hi := lo + rnd.IntN(20)
			if err := c.Scale(lo, hi); err != nil {
				t.Fatal(err)
			}
			if n := c.Stats().Target; n < lo || n > hi {
				t.Fatalf("target %d outside %d to %d", n, lo, hi)
			}
			wait(8 * time.Millisecond) // what ran above the bound has ended
			if n := c.Stats().Workers; n < lo || n > hi {
				t.Fatalf("%d workers outside %d to %d", n, lo, hi)
			}
		}
		wait(10 * time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 20000")
	})
	b := memory.New(memory.Config{})
	c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(noop), quiet(container.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]int{{-1, 3}, {3, 2}, {1, 1 << 30}} {
		if err := c.Scale(bad[0], bad[1]); err == nil {
			t.Errorf("Scale(%d, %d) was accepted", bad[0], bad[1])
		}
	}
}

// A snapshot never shows a target outside of its bounds, also one that is taken while they
// change.
func TestSnapshotKeepsTheBounds(t *testing.T) {
	b := memory.New(memory.Config{})
	c := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			if err := c.Scale(1+7*(i%2), 2+14*(i%2)); err != nil {
				t.Error(err)
			}
		}
	}()
	for changing := true; changing; {
		select {
		case <-done:
			changing = false
		default:
		}
		if st := c.Stats(); st.Target < st.Min || st.Target > st.Max {
			t.Fatalf("target %d outside %d to %d", st.Target, st.Min, st.Max)
		}
	}
	stop(t, c)
}

// New bounds during a drain are those of the next run; the one that ends keeps its workers.
func TestScaleDuringADrainCountsForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(10)...)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(time.Second); return nil }),
			container.Config{Workers: container.Workers{Min: 2, Max: 2}})
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop(t, c)
		}()
		synctest.Wait()
		if err := c.Scale(5, 7); err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.State != container.StateDraining || st.Target != 2 || st.Workers != 2 {
			t.Errorf("draining: %+v", st)
		}
		<-stopped
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Target < 5 || st.Workers < 5 {
			t.Errorf("started again: %+v", st)
		}
		wait(time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 10")
	})
}

// F-E06: nothing configured never means unlimited: messages and bytes.
func TestNeverUnlimitedByAccident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(5000)...)
		block := longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error { <-ctx.Done(); return ctx.Err() })
		c := start(t, b.Queue("q", memory.QueueConfig{}), block, container.Config{DrainTimeout: -1})
		wait(5 * time.Minute)
		if n := b.Inspect("q").Unsettled; n > 20 {
			t.Errorf("%d held of 10 workers", n)
		}
		other := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{})
		wait(time.Second)
		if n := b.Inspect("q").Acked; n < 4900 {
			t.Errorf("the second instance got %d", n)
		}
		stop(t, other)
		stop(t, c)
	})
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		for range 100 {
			send(t, b, "q", &longshore.Message{Body: make([]byte, 1000)})
		}
		send(t, b, "large", &longshore.Message{Body: make([]byte, 50_000)}, &longshore.Message{Body: make([]byte, 50_000)})
		var most, handled atomic.Int64
		h := func(d *longshore.Delivery) error { wait(time.Millisecond); handled.Add(1); return nil }
		cfg := container.Config{MaxBytes: 10_000, Workers: container.Workers{Min: 30, Max: 30}}
		c := start(t, b.Queue("q", memory.QueueConfig{Pull: true}), handle(func(d *longshore.Delivery) error {
			most.Store(max(most.Load(), int64(b.Inspect("q").Unsettled)))
			return h(d)
		}), cfg)
		large := start(t, b.Queue("large", memory.QueueConfig{Pull: true}), handle(h), cfg)
		wait(time.Second)
		if most.Load() > 11 || handled.Load() != 102 {
			t.Errorf("%d held at once, %d handled", most.Load(), handled.Load())
		}
		stop(t, c)
		stop(t, large)
	})
}

// F-E07: one slow record, everybody else at full speed.
func TestSlowRecordHoldsNobodyUp(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		for _, look := range []int{-1, 0, 20} {
			t.Run(fmt.Sprint(order, look), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", "slow:0")
					var quick atomic.Int32
					var first atomic.Int64
					c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
						if string(d.Key) == "slow" {
							<-ctx.Done()
							return ctx.Err()
						}
						first.CompareAndSwap(0, time.Now().UnixNano())
						wait(10 * time.Millisecond)
						quick.Add(1)
						return nil
					}), container.Config{Order: order, Lookahead: look, Workers: container.Workers{Min: 2, Max: 2}})
					wait(time.Minute)
					begin := time.Now()
					for i := range 1000 {
						publish(t, b, "q", fmt.Sprintf("k%d:%d", i, i))
					}
					wait(11 * time.Second)
					if late := time.Duration(first.Load() - begin.UnixNano()); late > time.Second || quick.Load() != 1000 {
						t.Errorf("first after %v, %d of 1000 done while the slow one runs", late, quick.Load())
					}
					stop(t, c)
				})
			})
		}
	}
}

// Where a receive takes as long as a handler, workers do not wait for it: what
// they work on next is fetched meanwhile, and in large portions.
func TestSlowReceivesAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(2000)...)
		b.Delay(memory.OpReceive, 12*time.Millisecond)
		var handled atomic.Int32
		src := &counting{Source: b.Queue("q", memory.QueueConfig{Pull: true})}
		c := start(t, src, handle(func(*longshore.Delivery) error { wait(20 * time.Millisecond); handled.Add(1); return nil }),
			container.Config{Workers: container.Workers{Min: 10, Max: 10}})
		wait(4400 * time.Millisecond) // 4 s would be ideal
		if n := handled.Load(); n < 2000 {
			t.Errorf("%d of 2000 in 1.1 × the ideal time", n)
		}
		if calls := src.calls.Load(); calls > 2000/8 {
			t.Errorf("%d receives for 2000 messages", calls)
		}
		stop(t, c)
	})
}

// counting counts the receives of its consumers.
type counting struct {
	transport.Source
	calls atomic.Int32
}

type countingConsumer struct {
	transport.Consumer
	calls *atomic.Int32
}

func (s *counting) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return countingConsumer{c, &s.calls}, err
}

func (c countingConsumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	c.calls.Add(1)
	return c.Consumer.Receive(ctx, n)
}

// A lane that fills the window is told, with its share.
func TestHotLaneIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		for i := range 200 {
			publish(t, b, "q", fmt.Sprintf("hot:%d", i))
		}
		var told atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(100 * time.Millisecond); return nil }),
			container.Config{Order: container.ByKey, OnEvent: func(e container.Event) {
				if e.Kind == container.EventLaneFull && e.Reason == "hot" && e.Count > 5 {
					told.Add(1)
				}
			}})
		wait(5 * time.Second)
		if told.Load() != 1 {
			t.Errorf("told %d times", told.Load())
		}
		stop(t, c)
	})
}

// A stuck handler is counted and shown with its stack; Replace gives its worker
// back, the lane stays shut.
func TestStuckHandler(t *testing.T) {
	for _, action := range []container.StuckAction{container.StuckWait, container.StuckReplace} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "a:stuck", "a:next", "b:1")
			release := make(chan struct{})
			var next, other atomic.Int32
			var shown atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
				switch string(d.Body) {
				case "a:stuck":
					waitForEver(release)
				case "a:next":
					next.Add(1)
				default:
					other.Add(1)
				}
				return nil
			}), container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}, Stuck: container.Stuck{After: time.Minute, Action: action},
				OnEvent: func(e container.Event) {
					if e.Kind == container.EventStuck && e.Delivery.Key == "a" && e.Delivery.MessageID != "" && e.Delivery.Age >= time.Minute && strings.Contains(e.Stack, "waitForEver") {
						shown.Add(1)
					}
				}})
			wait(2 * time.Minute)
			st := c.Stats()
			if shown.Load() != 1 || st.Stuck != 1 || st.Oldest < 2*time.Minute {
				t.Errorf("shown %d times, %d stuck, oldest %v", shown.Load(), st.Stuck, st.Oldest)
			}
			if replaced := action == container.StuckReplace; (other.Load() == 1) != replaced || next.Load() != 0 || st.Ready != replaced {
				t.Errorf("%d others, %d of the lane, ready %v (%s)", other.Load(), next.Load(), st.Ready, st.Reason)
			}
			close(release)
			wait(time.Second)
			if st := c.Stats(); next.Load() != 1 || other.Load() != 1 || st.Stuck != 0 || st.Workers != 1 {
				t.Errorf("after it returned: %d, %d, %d stuck, %d workers", next.Load(), other.Load(), st.Stuck, st.Workers)
			}
			stop(t, c)
		})
	}
}

func exit() { runtime.Goexit() }

func waitForEver(release chan struct{}) { <-release }

// Work goes to whoever was idle for the shortest time: only so does idleness mean
// anything.
func TestWorkGoesToTheHottestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var mu sync.Mutex
		ran := map[string]bool{}
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			buf := make([]byte, 64)
			id, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "[")
			mu.Lock()
			ran[id] = true
			mu.Unlock()
			wait(time.Millisecond)
			return nil
		}), container.Config{Workers: container.Workers{Min: 100, Max: 100}})
		for range 500 {
			publish(t, b, "q", "m")
			wait(10 * time.Millisecond)
		}
		stop(t, c)
		if len(ran) > 4 {
			t.Errorf("%d of 100 workers ran for a trickle", len(ran))
		}
	})
}

// A handler that ends its goroutine (FailNow of a test) has failed like by a panic.
func TestGoexitInAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1", "k:2")
		var runs atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if runs.Add(1) == 1 {
				exit()
			}
			return nil
		}), container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}})
		wait(time.Minute)
		if st := c.Stats(); runs.Load() != 3 || st.Workers != 1 || st.Retried != 1 {
			t.Errorf("%d runs, %d workers, %d retried", runs.Load(), st.Workers, st.Retried)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 2")
	})
}
