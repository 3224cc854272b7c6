package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

// Permits 100 → 5 under load: running work is left alone, never more than 5
// afterwards, nothing redelivered; and back up within 10 ms.
func TestResizeUnderLoad(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", keyed(5000, 1000)...)
			limit := throttle.NewPermits(100)
			var g gauge
			var cut, redelivered atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(ctx context.Context, d *longshore.Delivery) error {
				g.enter()
				defer g.leave()
				select {
				case <-ctx.Done():
					cut.Add(1)
				case <-time.After(time.Second):
				}
				if d.Attempt > 1 || d.Origin.Redelivered {
					redelivered.Add(1)
				}
				return nil
			}), container.Config{Throttle: limit, Order: order, Workers: container.Workers{Min: 200, Max: 200}})
			wait(3500 * time.Millisecond)
			if now, most, _ := g.read(); now != 100 || most != 100 {
				t.Errorf("%d run, %d at most, of 100 permits", now, most)
			}
			limit.SetPermits(5)
			wait(10 * time.Millisecond)
			if now, _, _ := g.read(); now != 100 {
				t.Errorf("%d run 10 ms after the cut: running work is left alone", now)
			}
			wait(985 * time.Millisecond) // between the ends of the handlers
			g.read()
			for range 50 {
				wait(100 * time.Millisecond)
				if now, most, _ := g.read(); now != 5 || most > 5 {
					t.Errorf("%d run, %d at most, of 5 permits", now, most)
				}
			}
			limit.SetPermits(150)
			wait(10 * time.Millisecond)
			if now, _, _ := g.read(); now != 150 {
				t.Errorf("%d run 10 ms after 150 permits were given", now)
			}
			stop(t, c)
			if cut.Load() != 0 || redelivered.Load() != 0 || c.Stats().Redelivered != 0 {
				t.Errorf("%d interrupted, %d redelivered", cut.Load(), redelivered.Load())
			}
		})
	}
}

// keyed makes n messages with keys of which there are so many.
func keyed(n, keys int) []*longshore.Message {
	ms := numbered(n)
	for i, m := range ms {
		m.Key = fmt.Append(nil, "k", i%keys)
	}
	return ms
}

// Zero permits take nothing from the broker: not by the workers, not into the
// transport's buffer, not by a Receive that waits when they become zero.
func TestZeroPermitsTakeNothing(t *testing.T) {
	for name, limit := range map[string]*throttle.Limiter{"permits": throttle.NewPermits(0), "rate": throttle.NewRate(0)} {
		for _, cfg := range []memory.QueueConfig{{}, {Pull: true}} {
			t.Run(fmt.Sprint(name, cfg.Pull), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					src := b.Queue("q", cfg)
					var g gauge
					c := start(t, src, handle(func(context.Context, *longshore.Delivery) error {
						g.enter()
						g.leave()
						return nil
					}), container.Config{Throttle: limit, Workers: container.Workers{Min: 10, Max: 10}})
					wait(time.Second) // room for the container to say what it wants
					publish(t, b, "q", numbered(100)...)
					wait(time.Minute)
					if info := b.Inspect("q"); info.Unsettled != 0 || info.Ready != 100 || info.Consumers != 1 {
						t.Errorf("held: %+v", info)
					}
					if st := c.Stats(); !st.Ready || st.State != container.StateRunning {
						t.Errorf("%+v", st)
					}
					limit.Unlimit()
					wait(time.Second)
					if _, _, total := g.read(); total != 100 {
						t.Errorf("%d of 100 after the throttle was lifted", total)
					}
					limit.SetPermits(0) // while a Receive waits for more
					wait(2 * time.Second)
					publish(t, b, "q", numbered(100)...)
					wait(time.Minute)
					if info := b.Inspect("q"); info.Unsettled != 0 || info.Ready != 100 {
						t.Errorf("held after the second stop: %+v", info)
					}
					stop(t, c)
					limit.Unlimit()
					limit.SetPermits(0)
					if name == "rate" {
						limit.Unlimit()
						limit.SetRate(0)
					}
				})
			})
		}
	}
}

// Few permits: little is held beyond what runs, whatever the workers could do.
func TestThrottledContainerHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(1000)...)
		limit := throttle.NewPermits(3)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(context.Context, *longshore.Delivery) error {
			wait(time.Second)
			return nil
		}), container.Config{Throttle: limit, Workers: container.Workers{Min: 100, Max: 100}})
		for range 20 {
			wait(time.Second)
			if info := b.Inspect("q"); info.Unsettled > 6 {
				t.Errorf("%d held with 3 permits", info.Unsettled)
			}
		}
		stop(t, c)
	})
}

// A batch is one call and needs one permit: few permits do not make small batches.
func TestBatchesStayFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(1000)...)
		var g gauge
		var small atomic.Int32
		c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			g.enter()
			defer g.leave()
			if len(ds) < 50 {
				small.Add(1)
			}
			wait(time.Second)
			return nil
		}, container.Config{Logger: zap.NewNop(), Throttle: throttle.NewPermits(2), Batch: container.Batch{Size: 50}, Workers: container.Workers{Min: 8, Max: 8}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(30 * time.Second)
		if _, most, total := g.read(); most != 2 || total > 24 || small.Load() > 4 {
			t.Errorf("%d batches, %d at once, %d small", total, most, small.Load())
		}
		stop(t, c)
	})
}

// A drain while everything waits for a permit gives back uncounted, in its time.
func TestDrainWhileWaitingForAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(50)...)
		limit := throttle.NewPermits(1)
		run := func(c *container.ListenerContainer) {
			wait(time.Second)
			began := time.Now()
			stop(t, c)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the drain took %v", took)
			}
		}
		block := handle(func(_ context.Context, d *longshore.Delivery) error {
			wait(5 * time.Second)
			return nil
		})
		run(start(t, b.Queue("q", memory.QueueConfig{}), block, container.Config{Throttle: limit}))
		if st := limit.State(); st.InUse != 0 {
			t.Errorf("%d permits left in use", st.InUse)
		}
		var first atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(_ context.Context, d *longshore.Delivery) error {
			if d.Attempt == 1 {
				first.Add(1)
			}
			return nil
		}), container.Config{})
		wait(time.Minute)
		stop(t, c)
		if first.Load() != 49 {
			t.Errorf("%d of 49 came back as attempt 1", first.Load())
		}
	})
}

// The same inside a worker: a delivery that waits for its key's permit when the
// drain ends is released uncounted.
func TestDrainWhileWaitingForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", keyed(10, 1)...)
		perKey := throttle.PerKey(0, func(d *longshore.Delivery) string { return string(d.Key) })
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Order: container.Unordered, Middleware: []longshore.Middleware{perKey}, Workers: container.Workers{Min: 10, Max: 10}})
		wait(time.Minute)
		if st := c.Stats(); st.Busy != 10 || st.Acked != 0 || st.Capacity > 0.01 {
			t.Errorf("busy %d, capacity %v: a wait is not work", st.Busy, st.Capacity)
		}
		stop(t, c)
		if info := b.Inspect("q"); info.Ready != 10 || c.Stats().Retried != 0 {
			t.Errorf("%+v", info)
		}
		perKey.SetPermits(1)
		var attempts atomic.Int32
		c = start(t, b.Queue("q", memory.QueueConfig{}), handle(func(_ context.Context, d *longshore.Delivery) error {
			attempts.Add(int32(d.Attempt))
			return nil
		}), container.Config{Middleware: []longshore.Middleware{perKey}})
		wait(time.Minute)
		stop(t, c)
		if attempts.Load() != 10 {
			t.Errorf("the attempts add up to %d of 10 deliveries", attempts.Load())
		}
	})
}

// No wake-up is lost: whatever opens and shuts meanwhile, in the end all is handled.
func TestNoLostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		limit := throttle.NewPermits(1)
		var handled atomic.Int32
		h := handle(func(context.Context, *longshore.Delivery) error {
			wait(time.Millisecond)
			if n := handled.Add(1); n%7 == 0 {
				limit.SetPermits(0)
				time.AfterFunc(time.Millisecond, func() { limit.SetPermits(int(n % 3)) })
				time.AfterFunc(2*time.Millisecond, func() { limit.SetPermits(1) })
			}
			return nil
		})
		var cs []*container.ListenerContainer
		for _, q := range []string{"a", "b", "c"} { // one limit for three containers
			publish(t, b, q, numbered(1000)...)
			cs = append(cs, start(t, b.Queue(q, memory.QueueConfig{}), h, container.Config{Throttle: limit}))
		}
		stolen := 0
		for range 1000 { // and other code that uses it too, impatiently
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if limit.Acquire(ctx) == nil {
				stolen++
				limit.Release()
			}
			cancel()
			wait(time.Millisecond)
		}
		wait(time.Minute)
		if handled.Load() != 3000 || stolen == 0 {
			t.Errorf("%d of 3000 handled, %d taken by others", handled.Load(), stolen)
		}
		for _, c := range cs {
			stop(t, c)
		}
	})
}

// Limits per key: each by itself, keys without one not at all; in batches too.
func TestPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", keyed(400, 4)...)
		key := func(d *longshore.Delivery) string {
			if string(d.Key) == "k3" {
				return ""
			}
			return string(d.Key)
		}
		perKey := throttle.PerKey(2, key)
		perKey.SetKey("k1", throttle.Limits{Permits: 5, Rate: -1})
		gauges := map[string]*gauge{"k0": {}, "k1": {}, "k2": {}, "k3": {}}
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(_ context.Context, d *longshore.Delivery) error {
			g := gauges[string(d.Key)]
			g.enter()
			defer g.leave()
			wait(100 * time.Millisecond)
			return nil
		}), container.Config{Order: container.Unordered, Middleware: []longshore.Middleware{perKey}, Workers: container.Workers{Min: 100, Max: 100}})
		wait(time.Minute)
		stop(t, c)
		for k, want := range map[string]int{"k0": 2, "k1": 5, "k2": 2} {
			if _, most, total := gauges[k].read(); most != want || total != 100 {
				t.Errorf("%s: %d at once of %d, %d in all", k, most, want, total)
			}
		}
		if _, most, _ := gauges["k3"].read(); most <= 5 {
			t.Errorf("no key: %d at once, as if limited", most)
		}
	})
}

// Batches take a permit of each of their keys and cannot wait for each other.
func TestPerKeyInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", keyed(1000, 7)...)
		perKey := throttle.PerKey(1, func(d *longshore.Delivery) string { return string(d.Key) })
		var handled atomic.Int32
		c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			wait(10 * time.Millisecond)
			handled.Add(int32(len(ds)))
			if len(ds) > 3 {
				return longshore.BatchError{0: errors.New("the first fails")}
			}
			return nil
		}, container.Config{Logger: zap.NewNop(), Order: container.Unordered, Middleware: []longshore.Middleware{perKey}, Batch: container.Batch{Size: 5}, Redelivery: container.Redelivery{MaxAttempts: 2}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(10 * time.Minute)
		if st := c.Stats(); st.InFlight != 0 || st.Parked != 0 || handled.Load() < 1000 {
			t.Errorf("%d handled, %d in flight", handled.Load(), st.InFlight)
		}
		stop(t, c)
	})
}

// Keys that are out of use are forgotten, also those with a rate.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, k := range []*throttle.Keyed{
			throttle.PerKey(1, func(d *longshore.Delivery) string { return d.ID }),
			throttle.PerKeyRate(2, func(d *longshore.Delivery) string { return d.ID }),
		} {
			h := k.Wrap(handle(func(context.Context, *longshore.Delivery) error { return nil }))
			for i := range 10000 {
				d := longshore.NewDelivery(t.Context(), nil, 0)
				d.ID = fmt.Sprint(i)
				if err := h.Handle(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				wait(time.Second)
			}
			if n := k.Keys(); n > 12 {
				t.Errorf("%d keys are remembered", n)
			}
		}
	})
}

// The rate of a key holds over its calls, and changes for those who wait.
func TestPerKeyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := throttle.PerKeyRate(1, func(d *longshore.Delivery) string { return "same" })
		h := k.Wrap(handle(func(context.Context, *longshore.Delivery) error { return nil }))
		began := time.Now()
		for range 10 {
			if err := h.Handle(t.Context(), longshore.NewDelivery(t.Context(), nil, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("10 starts at 1 per second took %v", took)
		}
		time.AfterFunc(time.Second/2, func() { k.SetRate(0) })
		time.AfterFunc(time.Hour, func() { k.SetRate(1000) })
		began = time.Now()
		if err := h.Handle(t.Context(), longshore.NewDelivery(t.Context(), nil, 0)); err != nil || time.Since(began) > time.Hour+10*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestPerKeyWithoutAFunction(t *testing.T) {
	b := memory.New(memory.Config{})
	c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{throttle.PerKey(1, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("start: %v", err)
	}
}
