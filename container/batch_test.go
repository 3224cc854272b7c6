package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func startBatch(t testing.TB, src transport.Source, h longshore.BatchHandlerFunc, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	c, err := container.NewBatch(src, h, quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	run(t, c)
	return c
}

// F-E04: batch, concurrency and prefetch fit together, or are refused.
func TestBatchConcurrencyAndPrefetch(t *testing.T) {
	sizes := []int{1, 2, 16, 17, 50}
	for _, size := range sizes {
		for _, workers := range sizes {
			for _, prefetch := range sizes {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", numbered(101)...)
					var handled atomic.Int32
					c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{Prefetch: prefetch}), func(_ context.Context, ds []*longshore.Delivery) error {
						if len(ds) == 0 || len(ds) > size {
							t.Errorf("a batch of %d", len(ds))
						}
						handled.Add(int32(len(ds)))
						return nil
					}, quiet(container.Config{Workers: container.Workers{Min: workers, Max: workers}, Batch: container.Batch{Size: size, Linger: 100 * time.Millisecond}}))
					if err != nil {
						t.Fatal(err)
					}
					run(t, c)
					// Never idle with a backlog for longer than linger + 1 s.
					for last := int32(0); handled.Load() < 101; last = handled.Load() {
						wait(1100 * time.Millisecond)
						if handled.Load() == last {
							t.Fatalf("size %d, workers %d, prefetch %d: stuck at %d", size, workers, prefetch, last)
						}
					}
					stop(t, c)
					wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 101")
				})
			}
		}
	}
	b := memory.New(memory.Config{})
	_, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), func(context.Context, []*longshore.Delivery) error { return nil },
		container.Config{Lookahead: 5, Batch: container.Batch{Size: 50}})
	if err == nil || !strings.Contains(err.Error(), "window of 500") {
		t.Errorf("%v", err)
	}
}

func TestBatchIsFullOrItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var mu sync.Mutex
		var got []string
		begin := time.Now()
		c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			mu.Lock()
			got = append(got, fmt.Sprintf("%d at %v", len(ds), time.Since(begin)))
			mu.Unlock()
			return nil
		}, container.Config{Workers: container.Workers{Max: 1}, Batch: container.Batch{Size: 10, Linger: time.Second}})
		publish(t, b, "q", numbered(23)...)
		wait(1500 * time.Millisecond)
		publish(t, b, "q", "one more")
		wait(2 * time.Second)
		stop(t, c)
		if s := fmt.Sprint(got); s != "[10 at 0s 10 at 0s 3 at 1s 1 at 2.5s]" {
			t.Error(s)
		}
	})
}

func TestBatchOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a:ok", "a:bad", "a:ok2", "b:reject", "b:ok", "c:discard")
		var mu sync.Mutex
		attempts := map[string]int{}
		c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			failed := longshore.BatchError{}
			for i, d := range ds {
				attempts[string(d.Body)]++
				switch string(d.Body) {
				case "a:bad":
					failed[i] = errBad
				case "b:reject":
					failed[i] = longshore.Reject(errBad)
				case "c:discard":
					failed[i] = longshore.Discard(errBad)
				}
			}
			return fmt.Errorf("wrapped: %w", failed)
		}, container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 3}})
		wait(time.Minute)
		stop(t, c)
		if s := fmt.Sprint(attempts); s != "map[a:bad:3 a:ok:1 a:ok2:1 b:ok:1 b:reject:1 c:discard:1]" {
			t.Error(s)
		}
		if b.Inspect("dead").Published != 2 || c.Stats().Discarded != 1 {
			t.Errorf("%d dead", b.Inspect("dead").Published)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 6")
	})
}

// Of a lane's part of a batch some fail: they come again in order, each not before
// its delay, and before those behind them.
func TestFailuresOfABatchKeepDelayAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a:1", "a:2", "a:3", "a:4", "a:5", "a:6")
		var got seen
		begin := time.Now()
		c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			failed := longshore.BatchError{}
			for i, d := range ds {
				got.add(fmt.Sprintf("%s@%v", d.Body, time.Since(begin)))
				if n := d.Body[2]; d.Attempt == 1 && (n == '2' || n == '3') {
					failed[i] = longshore.Retry(errBad, time.Duration(n-'0')*time.Second)
				}
			}
			return failed
		}, container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}, Batch: container.Batch{Size: 4, Linger: -1}})
		wait(time.Minute)
		stop(t, c)
		if s := fmt.Sprint(got.all()); s != "[a:1@0s a:2@0s a:3@0s a:4@0s a:2@2s a:3@3s a:5@3s a:6@3s]" {
			t.Error(s)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 6")
	})
}

// One bad item, its neighbours unharmed: an error for the whole batch does not
// say who is at fault, so each comes again alone.
func TestPoisonDoesNotTakeItsBatchWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "ok1", "ok2", "poison", "ok3")
		c := startBatch(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay}), func(_ context.Context, ds []*longshore.Delivery) error {
			for _, d := range ds {
				if string(d.Body) == "poison" {
					panic("boom")
				}
			}
			return nil
		}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Jitter: -1}}})
		wait(time.Minute)
		stop(t, c)
		if dead := browse(t, b, "dead"); len(dead) != 1 || string(dead[0].Body) != "poison" || dead[0].Headers.String(container.HeaderDeadReason) != "panic" {
			t.Errorf("%d dead", len(dead))
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 4")
	})
}

// Several of a lane come in order, in one batch, and never in two at once.
func TestBatchKeepsTheOrderOfItsLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var bodies []string
		for i := range 400 {
			bodies = append(bodies, fmt.Sprintf("k%d:%03d", i%5, i))
		}
		publish(t, b, "q", bodies...)
		var mu sync.Mutex
		last, busy := map[string]string{}, map[string]bool{}
		c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			own := map[string]bool{}
			mu.Lock()
			for _, d := range ds {
				k := string(d.Key)
				if busy[k] && !own[k] {
					t.Errorf("key %s in two batches at once", k)
				}
				busy[k], own[k] = true, true
				if last[k] >= string(d.Body) {
					t.Errorf("%s after %s", d.Body, last[k])
				}
				last[k] = string(d.Body)
			}
			mu.Unlock()
			wait(5 * time.Millisecond)
			mu.Lock()
			for k := range own {
				busy[k] = false
			}
			mu.Unlock()
			return nil
		}, container.Config{Order: container.ByKey, Workers: container.Workers{Min: 3}, Batch: container.Batch{Size: 7, Linger: 5 * time.Millisecond}})
		wait(time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 400")
	})
}

func TestDrainOfAPartialBatch(t *testing.T) {
	for _, counts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", numbered(3)...)
			var handled atomic.Int32
			c := startBatch(t, b.Queue("q", memory.QueueConfig{CountsReturns: counts}), func(_ context.Context, ds []*longshore.Delivery) error {
				handled.Add(int32(len(ds)))
				return nil
			}, container.Config{Batch: container.Batch{Size: 10, Linger: time.Hour}})
			synctest.Wait()
			begin := time.Now()
			stop(t, c)
			if took := time.Since(begin); took > time.Second || (handled.Load() == 3) != counts {
				t.Errorf("counts %v: %v, %d handled", counts, took, handled.Load())
			}
		})
	}
}

type onlySingle struct{}

func (onlySingle) Name() string                                  { return "only-single" }
func (onlySingle) Wrap(next longshore.Handler) longshore.Handler { return next }

type both struct {
	onlySingle
	calls *atomic.Int32
}

func (m both) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		m.calls.Add(1)
		return next.HandleBatch(ctx, ds)
	})
}

func TestMiddlewareOfBatches(t *testing.T) {
	b := memory.New(memory.Config{})
	h := func(context.Context, []*longshore.Delivery) error { return nil }
	_, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), h, container.Config{Middleware: []longshore.Middleware{onlySingle{}}})
	if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "only-single") {
		t.Errorf("%v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var calls atomic.Int32
		publish(t, b, "q", "m")
		c := startBatch(t, b.Queue("q", memory.QueueConfig{}), h, container.Config{Middleware: []longshore.Middleware{both{calls: &calls}}})
		wait(time.Second)
		stop(t, c)
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

// An empty BatchError is an error that is not nil; a middleware would take it for
// a failure.
func TestMiddlewaresOfBatchesSeeNoFailureWhereNothingFailed(t *testing.T) {
	for name, result := range map[string]error{
		"empty": longshore.BatchError{}, "nobody": longshore.BatchError{0: nil}, "wrapped": fmt.Errorf("done: %w", longshore.BatchError{}),
	} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "m")
			var seen atomic.Value
			c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(context.Context, []*longshore.Delivery) error { return result },
				container.Config{Middleware: []longshore.Middleware{witness{got: &seen}}})
			wait(time.Second)
			stop(t, c)
			if got := seen.Load(); got != "<nil>" {
				t.Errorf("%s: the middleware saw %v", name, got)
			}
			wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
		})
	}
}

// witness writes down what the handler returned.
type witness struct {
	onlySingle
	got *atomic.Value
}

func (m witness) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		err := next.HandleBatch(ctx, ds)
		m.got.Store(fmt.Sprint(err))
		return err
	})
}

// What a batch put back keeps its order when its first one's delay is over before the
// batch is, and that fails again.
func TestWhatABatchPutBackKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1", "k:2", "k:3", "k:4")
		var calls seen
		c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			failed := longshore.BatchError{}
			for i, d := range ds {
				calls.add(string(d.Body))
				switch {
				case len(ds) == 4 && i == 1:
					failed[i] = longshore.Reject(errBad)
				case d.Attempt < 3:
					failed[i] = longshore.Retry(errBad, time.Millisecond)
				}
			}
			return failed
		}, quiet(container.Config{Order: container.ByKey, Batch: container.Batch{Size: 4, Linger: time.Second},
			DeadLetter: container.DeadLetter{To: "dead", Via: slowPlace{}}, Workers: container.Workers{Max: 1}}))
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		wait(time.Minute)
		if got, want := fmt.Sprint(calls.all()), "[k:1 k:2 k:3 k:4 k:1 k:1 k:3 k:3 k:4 k:4]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// slowPlace takes a dead letter slowly.
type slowPlace struct{}

func (slowPlace) Publish(context.Context, string, ...*longshore.Message) error {
	wait(10 * time.Millisecond)
	return nil
}
func (slowPlace) Close(context.Context) error { return nil }

// What a hold left here in a batch container begins when the hold is over, though
// nothing more comes.
func TestBatchGoesOnAfterAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &batchBreaker{&breaker{}}
		free := make(chan struct{})
		var n atomic.Int32
		c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{CountsReturns: true}), func(_ context.Context, ds []*longshore.Delivery) error {
			if n.Add(int32(len(ds))) == 2 {
				<-free
			}
			return nil
		}, quiet(container.Config{Batch: container.Batch{Size: 2, Linger: 20 * time.Millisecond}, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Max: 1}}))
		if err != nil {
			t.Fatal(err)
		}
		publish(t, b, "q", "1", "2")
		run(t, c)
		synctest.Wait()
		publish(t, b, "q", "3") // the only worker is busy: the transport has it
		wait(time.Second)
		k.set(true)
		wait(time.Second)
		close(free)
		wait(time.Second)
		k.set(false)
		wait(time.Minute)
		if n.Load() != 3 {
			t.Errorf("%d of 3 were handled: %+v", n.Load(), c.Stats())
		}
	})
}

type batchBreaker struct{ *breaker }

func (batchBreaker) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler { return next }
