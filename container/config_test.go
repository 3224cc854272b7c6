package container_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-K04: what cannot work is refused at construction, all of it at once, naming
// field, value and range.
func TestEverythingWrongIsToldAtOnce(t *testing.T) {
	b := memory.New(memory.Config{})
	_, err := container.New(b.Queue("q", memory.QueueConfig{Prefetch: -5}), nil, container.Config{
		Workers: container.Workers{Min: 5, Max: 3}, Lookahead: -2, MaxBytes: -1, Autoscale: autoscale.Adaptive{Hold: time.Nanosecond},
		Order: container.ByPartition, Settle: 7, Batch: container.Batch{Size: 3}, Stuck: container.Stuck{After: -5, Action: 9},
		Redelivery: container.Redelivery{MaxAttempts: -1, Parked: -1, Backoff: container.Backoff{Initial: time.Hour, Max: time.Second, Multiplier: 0.5, Jitter: 3}},
		DeadLetter: container.DeadLetter{To: "x", Policy: container.DeadLetterKeep}, Reopen: container.Backoff{Max: -1},
		DrainTimeout: -7, CancelGrace: -1, Middleware: []longshore.Middleware{nil},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"handler is nil", "Workers.Min is 5", "at most Workers.Max, which is 3", "Lookahead is -2", "-1 to", "MaxBytes is -1", "Hold is 1ns",
		"Order is ByPartition", "Settle is 7", "Batch is set", "Stuck.After", "Stuck.Action is 9", "MaxAttempts is -1", "Parked is -1", "Backoff.Initial is 1h0m0s",
		"Multiplier is 0.5", "Jitter is 3", "DeadLetter has both", "Reopen.Max is -1ns", "DrainTimeout is -7ns", "CancelGrace is -1ns", "Middleware[0] is nil", "Prefetch"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if !errors.Is(err, longshore.CodeConfig) {
		t.Error("no code")
	}
}

// F-K04: one field set and its neighbours zero behaves as documented.
func TestHalfFilledStructs(t *testing.T) {
	b := memory.New(memory.Config{})
	src := b.Queue("q", memory.QueueConfig{})
	for _, tc := range []struct {
		cfg      container.Config
		min, max int
	}{
		{container.Config{}, 1, 10},
		{container.Config{Workers: container.Workers{Min: 4}}, 4, 10},
		{container.Config{Workers: container.Workers{Min: 40}}, 40, 40},
		{container.Config{Workers: container.Workers{Max: 1}}, 1, 1},
	} {
		c, err := container.New(src, handle(noop), quiet(tc.cfg))
		if err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Min != tc.min || st.Max != tc.max || c.Name() != "q" || c.StopBudget() != 22*time.Second {
			t.Errorf("%+v: %d to %d", tc.cfg.Workers, st.Min, st.Max)
		}
	}
	for _, backoff := range []container.Backoff{{Initial: time.Hour}, {Max: time.Millisecond}, {Multiplier: 1}, {Jitter: -1}, {Jitter: 1}} {
		if _, err := container.New(src, handle(noop), quiet(container.Config{Redelivery: container.Redelivery{Backoff: backoff}, Reopen: backoff})); err != nil {
			t.Errorf("%+v: %v", backoff, err)
		}
	}
}

// checking is a middleware that looks at the container it is in.
type checking struct {
	facts longshore.Facts
	err   error
}

func (*checking) Wrap(next longshore.Handler) longshore.Handler { return next }
func (c *checking) Check(_ context.Context, f longshore.Facts) error {
	c.facts = f
	return c.err
}

func TestCheckersSeeTheFactsAndMayRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &checking{}
		cfg := container.Config{Middleware: []longshore.Middleware{k}, Order: container.ByKey, Settle: container.SettleManual, Workers: container.Workers{Max: 7}, DrainTimeout: time.Minute}
		c := start(t, b.Queue("q", memory.QueueConfig{Lease: time.Minute}), handle(noop), cfg)
		if f := k.facts; f.Container != "q" || f.WorkersMax != 7 || f.Order != "key" || !f.Manual || f.DrainTimeout != time.Minute || f.Capabilities.Lease != time.Minute {
			t.Errorf("%+v", f)
		}
		stop(t, c)
		k.err = errBad
		if err := c.Start(context.Background()); !errors.Is(err, errBad) || b.Connections() != 0 {
			t.Errorf("%v, %d connections", err, b.Connections())
		}
	})
}

// outcomes is a middleware that hears of verdicts.
type outcomes struct {
	seen seen
}

func (*outcomes) Wrap(next longshore.Handler) longshore.Handler { return next }
func (o *outcomes) Outcome(d *longshore.Delivery, out longshore.Outcome) {
	o.seen.add(fmt.Sprint(string(d.Body), " ", out.Verdict, " ", out.Took, " ", out.Started.Equal(d.Started())))
	panic("a defect in a middleware must not end the worker")
}

func TestOutcomesCarryTheTimeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "good", "bad")
		o := &outcomes{}
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if err := d.Wait(ctx, func(context.Context) error { wait(time.Minute); return nil }); err != nil {
				return err
			}
			wait(time.Second)
			if string(d.Body) == "bad" {
				return longshore.Reject(errBad)
			}
			return nil
		}), container.Config{Middleware: []longshore.Middleware{o}, DeadLetter: container.DeadLetter{To: "dead"}, Workers: container.Workers{Max: 1}})
		wait(30 * time.Second)
		if st := c.Stats(); st.Capacity != 0 {
			t.Errorf("capacity %v while it only waits", st.Capacity)
		}
		wait(10 * time.Minute)
		stop(t, c)
		if got := fmt.Sprint(o.seen.all()); got != "[good ack 1s true bad reject 1s true]" {
			t.Error(got)
		}
	})
}

// named is a middleware of which only the name matters.
type named string

func (n named) Name() string                                { return string(n) }
func (named) Wrap(next longshore.Handler) longshore.Handler { return next }

func TestWrongOrdersAreWarnedOf(t *testing.T) {
	cfg := container.Config{Middleware: []longshore.Middleware{named("mutex"), named("recover"), named("x"), named("x")}}
	if w := container.Validate(cfg); len(w) != 1 || !strings.Contains(w[0], `"recover" is inside "mutex"`) {
		t.Errorf("%v", w)
	}
	cfg.Middleware = []longshore.Middleware{named("recover"), named("mutex")}
	if w := container.Validate(cfg); len(w) != 0 {
		t.Errorf("%v", w)
	}
}

// The parts of a batch of Spring share one id: what remembers ids would skip all but the
// first, and the whole would be acknowledged.
func TestWhatRemembersIDsIsRefusedInsideOfSpringBatches(t *testing.T) {
	for _, name := range []string{"dedupe", "mutex"} {
		mws := []longshore.Middleware{named("spring-batches"), named(name)}
		for range 2 {
			_, err := container.New(memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }), container.Config{Middleware: mws})
			inside := mws[0] == named("spring-batches")
			if (err != nil) != inside || inside && !strings.Contains(err.Error(), `put "`+name+`" first`) {
				t.Errorf("%v: %v", mws, err)
			}
			slices.Reverse(mws)
		}
	}
	if w := container.Validate(container.Config{Middleware: []longshore.Middleware{named("spring-batches"), named("decode")}}); len(w) != 1 || !strings.Contains(w[0], "as a whole") {
		t.Errorf("%v", w)
	}
}

// A subscriber that is slow misses events and is told how many; nobody waits.
func TestSlowSubscriberMissesEventsAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return longshore.Discard(errBad) }), container.Config{})
		synctest.Wait() // what belongs to the start is through
		events, end := c.Events(5)
		publish(t, b, "q", numbered(100)...)
		wait(time.Second)
		for range 5 {
			<-events
		}
		publish(t, b, "q", "one more")
		wait(time.Second)
		if e := <-events; e.Dropped != 95 || e.Kind != container.EventDiscarded || e.Container != "q" || e.Delivery.MessageID == "" {
			t.Errorf("%+v", e)
		}
		end()
		end()
		if _, open := <-events; open {
			t.Error("still open")
		}
		stop(t, c)
	})
}
