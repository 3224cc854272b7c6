package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-F07: however often a breaker opens, a broker that counts returns has nothing to
// count: what was received, buffered or released for a moment waits here.
func TestHoldsCostNoReturn(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			var bodies []string
			for i := range 300 {
				bodies = append(bodies, fmt.Sprintf("k%d:%d", i%20, i))
			}
			publish(t, b, "q", bodies...)
			k := &breaker{}
			var calls, again atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{CountsReturns: true, DeliveryLimit: 3, DeadLetter: "dead"}), handle(func(d *longshore.Delivery) error {
				if d.Attempt > 1 {
					again.Add(1)
				}
				wait(50 * time.Millisecond)
				if calls.Add(1)%10 == 0 {
					return longshore.Release(errors.New("the lock is busy"), 5*time.Second)
				}
				return nil
			}), container.Config{Order: order, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 3, Max: 3}})
			for range 20 {
				wait(120 * time.Millisecond)
				k.set(true)
				wait(10 * time.Second)
				if n := b.Inspect("q").Consumers; n != 0 {
					t.Errorf("%d consumers while held", n)
				}
				k.set(false)
			}
			wait(10 * time.Minute)
			if info := b.Inspect("q"); info.Acked != 300 || again.Load() != 0 || b.Inspect("dead").Published != 0 {
				t.Errorf("%d acked, %d came again, %d dead", info.Acked, again.Load(), b.Inspect("dead").Published)
			}
			stop(t, c)
		})
	}
}

// busy is a source whose consumers say when Resume is called, and return from it
// when they are told to: so long its container's supervisor is busy.
type busy struct {
	transport.Source
	begun, end chan struct{}
}

func (s *busy) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &busyConsumer{c, s}, nil
}

type busyConsumer struct {
	transport.Consumer
	s *busy
}

func (*busyConsumer) Pause(context.Context) error { return nil }

func (c *busyConsumer) Resume(context.Context) error {
	c.s.begun <- struct{}{}
	<-c.s.end
	return nil
}

// F-F07: a hold that is opened and closed again before the supervisor has seen it
// leaves the consumer at work; one that comes on top of a pause does not end that.
func TestHoldThatIsOverAtOnceStopsNothing(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused=", paused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				k := &breaker{}
				var handled atomic.Int32
				src := &busy{b.Queue("q", memory.QueueConfig{}), make(chan struct{}), make(chan struct{})}
				c := start(t, src, handle(func(*longshore.Delivery) error { handled.Add(1); return nil }),
					container.Config{Middleware: []longshore.Middleware{k}})
				synctest.Wait()
				c.Pause()
				synctest.Wait()
				c.Resume()
				<-src.begun
				if paused {
					c.Pause()
				}
				k.set(true)
				k.set(false)
				src.end <- struct{}{}
				synctest.Wait()
				publish(t, b, "q", numbered(20)...)
				wait(10 * time.Second)
				if paused {
					if n := handled.Load(); n != 0 {
						t.Errorf("%d handled while paused", n)
					}
					c.Resume()
					<-src.begun
					src.end <- struct{}{}
					wait(10 * time.Second)
				}
				if st := c.Stats(); handled.Load() != 20 || !st.Ready || st.Generation != 1 || b.Inspect("q").Consumers != 1 {
					t.Errorf("%d of 20 handled, %d consumers, %+v", handled.Load(), b.Inspect("q").Consumers, st)
				}
				stop(t, c)
			})
		})
	}
}

// openBreaker holds from the moment somebody watches it.
type openBreaker struct{ *breaker }

func (k openBreaker) Watch(changed func(held bool, reason string)) func() {
	stop := k.breaker.Watch(changed)
	k.set(true)
	return stop
}

// F-F07: a container that is held from the beginning, as by a breaker that it
// shares, has started all the same, and subscribes when the hold is over. Nothing that is
// started with it or after it waits for that.
func TestStartWhileHeld(t *testing.T) {
	for _, cfg := range []container.Config{{}, {WaitForBroker: true}, {StartPaused: true}} {
		for _, queue := range []memory.QueueConfig{{}, {SingleActive: true}, {CountsReturns: true}} {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", numbered(5)...)
				k := openBreaker{&breaker{}}
				cfg.Middleware = []longshore.Middleware{k}
				c, err := container.New(b.Queue("q", queue), handle(noop), quiet(cfg))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				if err = c.Start(ctx); err != nil || time.Since(began) > 0 {
					t.Fatalf("started after %v: %v", time.Since(began), err)
				}
				wait(2 * time.Minute)
				st := c.Stats()
				if st.State != container.StateRecovering || !st.Live || st.Ready || !strings.Contains(st.Reason, "held by breaker") || b.Inspect("q").Consumers != 0 {
					t.Errorf("held: %s, live %t, ready %t: %s; %d consumers", st.State, st.Live, st.Ready, st.Reason, b.Inspect("q").Consumers)
				}
				k.set(false)
				wait(time.Second)
				if st = c.Stats(); !st.Ready || b.Inspect("q").Consumers != 1 {
					t.Errorf("not subscribed: %+v", st)
				}
				c.Resume()
				wait(time.Second)
				stop(t, c)
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 5")
			})
		}
	}
}

// One that is stopped while it is still held has nothing to wait for either.
func TestStopWhileHeldFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{Middleware: []longshore.Middleware{openBreaker{&breaker{}}}})
		began := time.Now()
		rep := stop(t, c)
		if took := time.Since(began); took > 0 || rep.Bad() || c.State() != container.StateStopped {
			t.Errorf("%s after %v: %v", c.State(), took, rep)
		}
	})
}

// unwilling is a source whose consumers fail to cancel, flush and release.
type unwilling struct{ transport.Source }

func (s unwilling) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return unwillingConsumer{c}, err
}

type unwillingConsumer struct{ transport.Consumer }

func (c unwillingConsumer) Cancel(ctx context.Context) error {
	_ = c.Consumer.Cancel(ctx)
	return errors.New("no cancel")
}
func (unwillingConsumer) Flush(context.Context) error   { return errors.New("no flush") }
func (unwillingConsumer) Release(context.Context) error { return errors.New("no release") }

// What fails when a hold begins is reported, each step by itself, and the hold goes on.
func TestEachStepOfAHoldThatFailsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &breaker{}
		var events seen
		c := start(t, unwilling{b.Queue("q", memory.QueueConfig{})}, handle(func(*longshore.Delivery) error { return nil }),
			container.Config{Middleware: []longshore.Middleware{k}, OnEvent: func(e container.Event) {
				if e.Kind == container.EventNotice {
					events.add(fmt.Sprintf("%s: %v", e.Text, e.Err))
				}
			}})
		k.set(true)
		wait(time.Second)
		// In this order: the flush at the consumer's end fails too, and comes after them.
		left := strings.Join(events.all(), "\n")
		for _, want := range []string{"cancelling the consumer failed: no cancel", "flushing a cancelled consumer failed: no flush", "giving back what was buffered failed: no release"} {
			_, rest, found := strings.Cut(left, want)
			if !found {
				t.Errorf("%q is not reported, or not in its place: %q", want, events.all())
			}
			left = rest
		}
		k.set(false)
		wait(time.Second)
		if st := c.State(); st != container.StateRunning {
			t.Errorf("after the hold it is %s", st)
		}
		_ = c.Stop(t.Context()) // it cannot be flushed
	})
}
