package container_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// fickle is a source whose consumers fail the next call of a kind.
type fickle struct {
	transport.Source

	mu    sync.Mutex
	fails string     // the kind of call that fails next
	hangs bool       // each Resize lasts until its time is over
	calls []fickCall // all of them
}

type fickCall struct {
	what string
	n    int
}

// next notes a call, and fails it if that is wanted.
func (f *fickle) next(what string, n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fickCall{what, n})
	if f.fails == what {
		f.fails = ""
		return errors.New("the broker is slow")
	}
	return nil
}

func (f *fickle) fail(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = what
}

// numbers are those of all calls of a kind.
func (f *fickle) numbers(what string) (ns []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.what == what {
			ns = append(ns, c.n)
		}
	}
	return ns
}

func (f *fickle) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := f.Source.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	p, ok := c.(transport.Pauser)
	if !ok {
		return nil, errors.New("it cannot pause")
	}
	return &fickleConsumer{c, p, f}, nil
}

type fickleConsumer struct {
	transport.Consumer

	pauser transport.Pauser
	of     *fickle
}

func (c *fickleConsumer) FollowWorkers(_ context.Context, n int) error {
	return c.of.next("follow", n)
}

func (c *fickleConsumer) Resize(ctx context.Context, n int) error {
	if c.of.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.of.next("resize", n)
}

func (c *fickleConsumer) Pause(ctx context.Context) error {
	if err := c.of.next("pause", 0); err != nil {
		return err
	}
	return c.pauser.Pause(ctx)
}

func (c *fickleConsumer) Resume(ctx context.Context) error {
	if err := c.of.next("resume", 0); err != nil {
		return err
	}
	return c.pauser.Resume(ctx)
}

// A call to a transport that failed is repeated, also where by then the number is wanted that
// the transport had before: it may have done a part of what failed.
func TestFailedCallsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		f := &fickle{Source: b.Queue("orders", memory.QueueConfig{})}
		var handled atomic.Int64
		c, err := container.New(f, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { handled.Add(1); return nil }),
			container.Config{Workers: container.Workers{Min: 3, Max: 3}})
		must(t, err)
		containertest.Start(t, c)
		for what, back := range map[string]int{"follow": 3, "resize": 11} {
			f.fail(what)
			must(t, c.Scale(5, 5))
			<-time.After(700 * time.Millisecond)
			must(t, c.Scale(3, 3))
			<-time.After(3 * time.Second)
			if ns := f.numbers(what); len(ns) < 2 || ns[0] <= back || ns[len(ns)-1] != back {
				t.Errorf("%s: %v, want a larger number that failed, and %d in the end", what, ns, back)
			}
		}
		f.fail("pause")
		c.Pause()
		<-time.After(3 * time.Second)
		f.fail("resume")
		c.Resume()
		publish(t, b, "orders", numbered(3)...)
		<-time.After(3 * time.Second)
		if paused, resumed := f.numbers("pause"), f.numbers("resume"); len(paused) != 2 || len(resumed) != 2 {
			t.Errorf("%d calls of Pause and %d of Resume, want 2 of each: one failed", len(paused), len(resumed))
		}
		if n := handled.Load(); n != 3 {
			t.Errorf("%d of 3 messages handled after a resume that failed once", n)
		}
	})
}

// A transport that takes its time to resize, and is asked for more by each parked retry, does
// not keep the container from what it looks after at each tick.
func TestSlowResizeStarvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		f := &fickle{Source: b.Queue("orders", memory.QueueConfig{}), hangs: true}
		c, err := container.New(f, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return errors.New("not yet") }),
			container.Config{Workers: container.Workers{Min: 3, Max: 3},
				Redelivery: container.Redelivery{MaxAttempts: 1000, Backoff: container.Backoff{Initial: 500 * time.Millisecond, Max: 500 * time.Millisecond}}})
		must(t, err)
		containertest.Start(t, c)
		publish(t, b, "orders", numbered(20)...)
		<-time.After(5 * time.Second)
		must(t, c.Scale(5, 5))
		<-time.After(10 * time.Second)
		if ns := f.numbers("follow"); len(ns) == 0 || ns[len(ns)-1] != 5 {
			t.Errorf("FollowWorkers was called with %v within ten seconds, want 5", ns)
		}
	})
}
