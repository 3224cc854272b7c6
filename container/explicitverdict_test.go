package container_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// onlooker notes what a middleware sees of the first call.
type onlooker struct {
	saw error
	all int
}

func (o *onlooker) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		return o.note(next.Handle(ctx, d))
	})
}

func (o *onlooker) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		return o.note(next.HandleBatch(ctx, ds))
	})
}

func (o *onlooker) note(err error) error {
	if o.all++; o.all == 1 {
		o.saw = err
	}
	return err
}

// F-A02, F-G03: a handler that gives its delivery back by a verb and returns nil has
// not succeeded, and middlewares must not take it for that: one that commits, or
// remembers what is done, would have the next attempt acked unhandled.
func TestMiddlewaresSeeWhatAVerbAskedFor(t *testing.T) {
	errBad := errors.New("bad")
	verbs := map[longshore.Verdict]func(context.Context, *longshore.Delivery) error{
		longshore.VerdictRetry:  func(ctx context.Context, d *longshore.Delivery) error { return d.Nack(ctx, time.Second) },
		longshore.VerdictReject: func(ctx context.Context, d *longshore.Delivery) error { return d.Reject(ctx, errBad) },
		longshore.VerdictAck:    func(ctx context.Context, d *longshore.Delivery) error { return d.Ack(ctx) },
	}
	for verdict, verb := range verbs {
		first := func(ctx context.Context, d *longshore.Delivery) error {
			if d.Attempt > 1 || d.ID != "m1" {
				return nil
			}
			return verb(ctx, d)
		}
		dead := container.DeadLetter{To: "dead"}
		t.Run(verdict.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, o := memory.New(memory.Config{}), &onlooker{}
				publish(t, b, "q", "m1")
				c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(first),
					container.Config{DeadLetter: dead, Middleware: []longshore.Middleware{o}})
				wait(time.Minute)
				stop(t, c)
				if v, _ := longshore.VerdictOf(o.saw); v != verdict {
					t.Errorf("the middleware saw %v", o.saw)
				}
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
			})
		})
		t.Run(verdict.String()+" in a batch", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, o := memory.New(memory.Config{}), &onlooker{}
				publish(t, b, "q", numbered(3)...)
				c := startBatch(t, b.Queue("q", memory.QueueConfig{}), func(ctx context.Context, ds []*longshore.Delivery) error {
					for _, d := range ds {
						if err := first(ctx, d); err != nil {
							return err
						}
					}
					return nil
				}, container.Config{Workers: container.Workers{Min: 1, Max: 1}, Batch: container.Batch{Size: 3, Linger: time.Second},
					DeadLetter: dead, Middleware: []longshore.Middleware{o}})
				wait(time.Minute)
				stop(t, c)
				var each longshore.BatchError
				_ = errors.As(o.saw, &each)
				if v, _ := longshore.VerdictOf(each[1]); v != verdict || len(each) > 1 {
					t.Errorf("the middleware saw %v", o.saw)
				}
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 3")
			})
		})
	}
}

// holder is a middleware that has something to commit.
type holder struct{ commit error }

func (h *holder) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		d.HoldAck()
		if err := next.Handle(ctx, d); err != nil || d.Attempt > 1 {
			return err
		}
		return h.commit
	})
}

// F-H03: an ack by hand within a middleware that commits is carried out after the
// commit, and not at all if that fails.
func TestAckByHandWaitsForTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "m1")
		var attempts []int
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			attempts = append(attempts, d.Attempt)
			if err := errors.Join(d.Ack(ctx), d.Ack(ctx)); err != nil || !d.Owned() {
				t.Errorf("acked twice before the commit: %v, ours: %t", err, d.Owned())
			}
			if err := d.Nack(ctx, 0); !errors.Is(err, longshore.ErrSettled) {
				t.Errorf("a nack after the ack: %v", err)
			}
			return nil
		}), container.Config{Middleware: []longshore.Middleware{&holder{commit: errors.New("no commit")}}})
		wait(time.Minute)
		stop(t, c)
		if !slices.Equal(attempts, []int{1, 2}) {
			t.Errorf("attempts %v, want 1 and 2", attempts)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
	})
}

// An ack by hand is carried out at once unless a middleware has something to commit, and
// other verbs wait for the return even then.
func TestOnlyAnAckIsCarriedOutAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		hold, nack bool
		owned      bool // after the verb
		want       string
	}{
		"ack":               {false, false, false, "ready 0, unsettled 0, delayed 0, acked 1"},
		"ack before commit": {true, false, true, "ready 0, unsettled 0, delayed 0, acked 1"},
		"nack":              {false, true, true, "ready 0, unsettled 0, delayed 1, acked 0"},
		"nack with commit":  {true, true, true, "ready 0, unsettled 0, delayed 1, acked 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "m1")
				c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					if tc.hold {
						d.HoldAck()
					}
					verb := d.Ack
					if tc.nack {
						verb = func(ctx context.Context) error { return d.Nack(ctx, time.Hour) }
					}
					if err := verb(ctx); err != nil || d.Owned() != tc.owned {
						t.Errorf("%v, ours: %t", err, d.Owned())
					}
					return nil
				}), container.Config{})
				wait(time.Minute)
				wantHeld(t, b, "q", tc.want)
				stop(t, c)
			})
		})
	}
}
