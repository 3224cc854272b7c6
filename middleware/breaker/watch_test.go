package breaker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/breaker"
)

// watch follows a breaker as a container does.
func watch(b *breaker.Breaker) (held *atomic.Bool, stop func()) {
	held = &atomic.Bool{}
	return held, b.Watch(func(now bool, _ string) { held.Store(now) })
}

// F-F07: a container that comes in the middle of a trial hears that it failed, whatever
// the one before it was told.
func TestWatcherInATrialHearsOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: time.Second, Ramp: -1})
		_, stop := watch(b)
		_ = call(b, breaker.Unavailable(nil))
		stop()
		wait(2 * time.Second)
		var held *atomic.Bool
		d := longshore.NewDelivery(context.Background(), nil, 0)
		_ = b.Wrap(handle(func(context.Context, *longshore.Delivery) error {
			held, stop = watch(b)
			return errors.New("down")
		})).Handle(d.Context(), d)
		if held == nil || !held.Load() || b.Status().State != breaker.Open {
			t.Fatalf("not held, %+v", b.Status())
		}
		wait(time.Minute)
		if held.Load() {
			t.Error("held after the time of the trial")
		}
		stop()
	})
}

// F-F07: a breaker that opened while a container drained, and whose time was over
// without one, probes for the next.
func TestTrialThatNobodyWaitedForComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: time.Second, Ramp: -1, Probe: func(context.Context) error { return nil }})
		_, stop := watch(b)
		stop()
		_ = call(b, breaker.Unavailable(nil))
		wait(2 * time.Second)
		held, stop := watch(b)
		if !held.Load() {
			t.Error("not held from the start")
		}
		wait(time.Minute)
		if held.Load() {
			t.Errorf("held for good, %+v", b.Status())
		}
		stop()
	})
}

// F-F07: a container that starts while the last one stops gets its trial.
func TestWatcherWhileTheLastOneStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		end := make(chan struct{})
		b := newBreaker(t, breaker.Config{OpenFor: time.Second, Ramp: -1, Probe: func(context.Context) error {
			if asked.Add(1) == 1 {
				<-end
			}
			return nil
		}})
		_, stop := watch(b)
		_ = call(b, breaker.Unavailable(nil))
		wait(2 * time.Second)
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		synctest.Wait()
		held, stop := watch(b)
		close(end)
		<-stopped
		wait(time.Minute)
		if held.Load() {
			t.Errorf("held for good, %+v", b.Status())
		}
		stop()
	})
}
