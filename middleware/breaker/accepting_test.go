package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport/memory"
)

// A scaler multiplies what is not done by Accepting. A trial that the dependency lets wait
// is as long as its timeout, and the container consumes for it: more processes would bring
// nothing all the same.
func TestNothingIsAcceptedUntilItHasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: 5 * time.Second, OpenMax: 5 * time.Second, Ramp: -1})
		trial := make(chan error)
		first := true
		h := handle(func(context.Context, *longshore.Delivery) error {
			if first {
				first = false
				return breaker.Unavailable(nil)
			}
			return <-trial
		})
		src := memory.New(memory.Config{}).Queue("q", memory.QueueConfig{})
		publish(t, src, 1000)
		c := start(t, src, h, container.Config{Middleware: []longshore.Middleware{b}, Workers: container.Workers{Max: 1}})
		want := func(state breaker.State, accepting bool) {
			t.Helper()
			synctest.Wait()
			if st := c.Stats(); b.Status().State != state || st.Accepting != accepting {
				t.Errorf("%s, accepting %v; want %s, %v", b.Status().State, st.Accepting, state, accepting)
			}
		}
		wait(time.Second)
		want(breaker.Open, false)
		wait(30 * time.Second)
		want(breaker.Trial, false)
		trial <- breaker.Unavailable(nil)
		want(breaker.Open, false)
		wait(30 * time.Second)
		want(breaker.Trial, false)
		trial <- nil
		want(breaker.Closed, true)
		close(trial)
		wait(time.Minute)
		stop(t, c)
	})
}
