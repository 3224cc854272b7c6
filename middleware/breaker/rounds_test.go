package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/breaker"
)

// F-F07: what a handler that was slow says when the breaker has opened meanwhile is no
// occasion for a trial.
func TestLateResultBeginsNoTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: 10 * time.Second, Ramp: -1})
		held, stop := watch(b)
		defer stop()
		result, ended := make(chan error), make(chan struct{})
		d := longshore.NewDelivery(context.Background(), nil, 0)
		go func() {
			defer close(ended)
			_ = b.Wrap(handle(func(context.Context, *longshore.Delivery) error { return <-result })).Handle(d.Context(), d)
		}()
		synctest.Wait()
		_ = call(b, breaker.Unavailable(nil))
		wait(7 * time.Second)
		result <- errors.New("down")
		<-ended
		if s := b.Status(); s.State != breaker.Open || !held.Load() {
			t.Errorf("after 7 of 10 s it is %+v, the container is held: %t", s, held.Load())
		}
		wait(4 * time.Second)
		if s := b.Status(); s.State != breaker.Trial || held.Load() {
			t.Errorf("after 11 s it is %+v, the container is held: %t", s, held.Load())
		}
	})
}

// F-F07: a trial that finds the dependency down does not open the breaker a second time,
// at some failure after it has closed.
func TestUnavailableTrialIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: time.Second, Ramp: -1})
		_, stop := watch(b)
		defer stop()
		_ = call(b, breaker.Unavailable(nil))
		wait(2 * time.Second)
		_ = call(b, breaker.Unavailable(nil))
		wait(4 * time.Second)
		if err := call(b, nil); err != nil || b.Status().State != breaker.Closed {
			t.Fatalf("it does not close: %v, %+v", err, b.Status())
		}
		_ = call(b, errors.New("a message's own fault"))
		if s := b.Status(); s.State != breaker.Closed {
			t.Errorf("one failure has opened it: %+v", s)
		}
	})
}
