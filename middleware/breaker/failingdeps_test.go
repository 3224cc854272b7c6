package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// slow is a source that takes its time to open.
type slow struct {
	*counted
	takes time.Duration
}

func (s *slow) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	wait(s.takes)
	return s.counted.Open(ctx, o)
}

// F-F07: a message that fails for its own fault, and comes first at each trial, is not
// the only trial there ever is: what waits behind it is handled.
func TestPoisonIsNotTheOnlyTrial(t *testing.T) {
	for name, queue := range map[string]memory.QueueConfig{"plain": {}, "counts returns": {CountsReturns: true, DeliveryLimit: 5, DeadLetter: "dead"},
		"no delay": {Without: memory.Delay}, "fifo": {FIFO: true}} {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			t.Run(fmt.Sprint(name, " ", order), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := memory.New(memory.Config{})
					// What waits in the container for its time is there before anything else is.
					src := &slow{&counted{Source: memoryQueue(m, queue)}, 8 * time.Second}
					l := newLedger()
					b := newBreaker(t, breaker.Config{Consecutive: 2, OpenFor: 10 * time.Second, Ramp: -1})
					pay := l.pay(20 * time.Millisecond)
					publish(t, src, 40)
					c := start(t, src, handle(func(ctx context.Context, d *longshore.Delivery) error {
						if string(d.Body) == "0" {
							return breaker.Unavailable(errors.New("so says the poison"))
						}
						return pay.Handle(ctx, d)
					}), container.Config{Order: order, Middleware: []longshore.Middleware{b}, Workers: container.Workers{Min: 1, Max: 1},
						DeadLetter: container.DeadLetter{To: "dead2"}})
					wait(30 * time.Minute)
					want := 39
					if order == container.ByKey || queue.FIFO {
						want-- // the one that comes behind it with its key
					}
					if _, _, handled := l.read(); handled != want || m.Inspect("dead").Published+m.Inspect("dead2").Published != 0 {
						t.Errorf("%d of %d handled, %d dead, %+v", handled, want, m.Inspect("dead").Published+m.Inspect("dead2").Published, b.Status())
					}
					stop(t, c)
				})
			})
		}
	}
}

// A suspect steps back once in each half-open phase, alone or in a batch; if nobody
// else comes it is the trial. While the breaker is closed it is like any other.
func TestSuspectsStepBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{OpenFor: 10 * time.Second, OpenMax: 10 * time.Second, Ramp: -1})
		bad := errors.New("down")
		open := func() {
			if b.Status().State != breaker.Open {
				_ = call(b, breaker.Unavailable(bad))
			}
			wait(10 * time.Second)
			synctest.Wait()
		}
		named := func(id string) *longshore.Delivery {
			d := longshore.NewDelivery(context.Background(), nil, 0)
			d.ID = id
			return d
		}
		calls := 0
		try := func(result error, ds ...*longshore.Delivery) error {
			if len(ds) > 1 {
				return b.WrapBatch(longshore.BatchHandlerFunc(func(context.Context, []*longshore.Delivery) error { calls++; return result })).HandleBatch(context.Background(), ds)
			}
			return b.Wrap(handle(func(context.Context, *longshore.Delivery) error { calls++; return result })).Handle(context.Background(), ds[0])
		}
		open()
		_ = try(bad, named("poison"))
		open()
		if v, after := longshore.VerdictOf(try(bad, named("poison"))); v != longshore.VerdictRelease || after != 5*time.Second || calls != 1 {
			t.Errorf("%s after %v, %d calls", v, after, calls)
		}
		_ = try(bad, named("poison")) // nobody came
		if calls != 2 || b.Status().State != breaker.Open {
			t.Errorf("%d calls, %s", calls, b.Status().State)
		}
		open()
		var each longshore.BatchError
		if err := try(nil, named("other"), named("poison")); !errors.As(err, &each) || calls != 2 {
			t.Fatalf("%v, %d calls", err, calls)
		}
		_, other := longshore.VerdictOf(each[0])
		if _, poison := longshore.VerdictOf(each[1]); other >= poison {
			t.Errorf("the other comes after %v, the suspect after %v", other, poison)
		}
		if err := try(nil, named("other")); err != nil || b.Status().State != breaker.Closed {
			t.Errorf("%v, %s", err, b.Status().State)
		}
		if err := try(nil, named("poison")); err != nil || calls != 4 {
			t.Errorf("closed: %v, %d calls", err, calls)
		}
	})
}
