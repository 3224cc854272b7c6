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
	"github.com/longshore-go/longshore/transport/memory"
)

// gate is a limiter as a throttle would be: permits, and starts per second.
type gate struct {
	mu      sync.Mutex
	permits int // < 0: no limit
	used    int
	every   time.Duration // between two starts; 0: no limit
	next    time.Time
	watch   map[int]func()
	n       int
	max     int
}

func newGate(permits int, every time.Duration) *gate {
	return &gate{permits: permits, every: every, watch: map[int]func(){}}
}

func (g *gate) TryAcquire(now time.Time) (bool, time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permits >= 0 && g.used >= g.permits {
		return false, time.Time{}
	}
	if g.every > 0 {
		if now.Before(g.next) {
			return false, g.next
		}
		g.next = now.Add(g.every)
	}
	g.used++
	g.max = max(g.max, g.used)
	return true, time.Time{}
}

func (g *gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used--
	g.tell()
}

// tell calls the watchers with the gate's own lock held, as a limiter may.
func (g *gate) tell() {
	for _, f := range g.watch {
		f()
	}
}

func (g *gate) Limits() (int, float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.every > 0 {
		return g.permits, float64(time.Second) / float64(g.every)
	}
	return g.permits, -1
}

func (g *gate) Watch(changed func()) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.n
	g.n++
	g.watch[id] = changed
	return func() {
		g.mu.Lock()
		delete(g.watch, id)
		g.mu.Unlock()
	}
}

func (g *gate) out() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used, g.max
}

func (g *gate) set(permits int) {
	g.mu.Lock()
	g.permits = permits
	g.tell()
	g.mu.Unlock()
}

// F-F01: permits come back on every path before and in the handler.
func TestPermitsComeBackOnEveryPath(t *testing.T) {
	paths := map[string]longshore.Handler{
		"undecodable": longshore.Typed(longshore.JSON{}, func(context.Context, int, *longshore.Delivery) error { return nil }),
		"panic":       handle(func(*longshore.Delivery) error { panic("boom") }),
		"filtered":    handle(func(*longshore.Delivery) error { return longshore.Discard(nil) }),
		"lock busy":   handle(func(*longshore.Delivery) error { return longshore.Release(nil, time.Hour) }),
		"retry":       handle(func(*longshore.Delivery) error { return longshore.Retry(nil, time.Hour) }),
		"settled":     handle(func(d *longshore.Delivery) error { return d.Ack(context.Background()) }),
	}
	for name, bad := range paths {
		for _, settle := range []container.Settle{container.SettleAuto, container.SettleManual} {
			t.Run(fmt.Sprint(name, settle), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					g := newGate(3, 0)
					publish(t, b, "q", numbered(9)...)
					publish(t, b, "q", "good")
					var good atomic.Int32
					c := start(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
						if string(d.Body) == "good" {
							good.Add(1)
							return d.Ack(ctx)
						}
						return bad.Handle(ctx, d)
					}), container.Config{Throttle: g, Settle: settle, DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 2}})
					wait(time.Second)
					if out, most := g.out(); good.Load() != 1 || out != 0 || most > 3 {
						t.Errorf("good handled %d times, %d permits out, %d at most", good.Load(), out, most)
					}
					stop(t, c)
				})
			})
		}
	}
}

// F-F05: throttling never costs an attempt, and what cannot start soon is not
// received.
func TestThrottlingNeverCostsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(500)...)
		g := newGate(-1, time.Second)
		var starts seen
		src := b.Queue("q", memory.QueueConfig{DeliveryLimit: 3, DeadLetter: "dead", Pull: true})
		c := start(t, src, handle(func(d *longshore.Delivery) error {
			if d.Attempt != 1 || d.Origin.Redelivered {
				t.Errorf("%s is attempt %d", d.Body, d.Attempt)
			}
			starts.add(string(d.Body))
			return nil
		}), container.Config{Throttle: g})
		wait(120*time.Second + time.Millisecond)
		if n := starts.len(); n != 121 {
			t.Errorf("%d starts in 120 s", n)
		}
		if held := b.Inspect("q").Unsettled; held > 2 {
			t.Errorf("%d held while one may start per second", held)
		}
		stop(t, c)
		if n := b.Inspect("dead").Published; n != 0 {
			t.Errorf("%d dead-lettered", n)
		}
	})
}

// F-F03: slow is not dead: one start in ten minutes outlasts every lease, and
// nothing is redelivered.
func TestSlowThrottleLosesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20)...)
		g := newGate(-1, 10*time.Minute)
		var handled atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Lease: 30 * time.Second, KeepLease: true}), handle(func(d *longshore.Delivery) error {
			if d.Origin.Redelivered || !d.Owned() {
				t.Error("redelivered or lost")
			}
			handled.Add(1)
			return nil
		}), container.Config{Throttle: g})
		wait(95 * time.Minute)
		if st := c.Stats(); handled.Load() != 10 || st.Lost != 0 || st.Generation != 1 {
			t.Errorf("%d handled, %d lost, generation %d", handled.Load(), st.Lost, st.Generation)
		}
		stop(t, c)
	})
}

// F-F05: permits 0 for a minute; a change is felt at once.
func TestPermitsChangeWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(1000)...)
		g := newGate(0, 0)
		var running, most atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Pull: true}), handle(func(*longshore.Delivery) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			wait(100 * time.Millisecond)
			return nil
		}), container.Config{Throttle: g, Workers: container.Workers{Min: 20, Max: 20}})
		wait(time.Minute)
		if b.Inspect("q").Unsettled != 0 || most.Load() != 0 {
			t.Errorf("with 0 permits: %s, %d ran", held(b, "q"), most.Load())
		}
		for _, n := range []int{5, 2, 9, 0, 1} {
			g.set(n)
			wait(150 * time.Millisecond) // what runs goes on
			most.Store(0)
			wait(time.Second)
			if int(most.Load()) != n {
				t.Errorf("%d permits: %d ran at once", n, most.Load())
			}
		}
		stop(t, c)
	})
}

// breaker is a middleware that holds the intake.
type breaker struct {
	mu      sync.Mutex
	changed func(bool, string)
	open    bool
}

func (*breaker) Name() string { return "breaker" }

func (k *breaker) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		k.mu.Lock()
		open := k.open
		k.mu.Unlock()
		if open {
			return longshore.Release(errors.New("open"), time.Second)
		}
		return next.Handle(ctx, d)
	})
}

func (k *breaker) Watch(changed func(held bool, reason string)) func() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = changed
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.changed = nil
	}
}

func (k *breaker) set(open bool) {
	k.mu.Lock()
	k.open = open
	f := k.changed
	k.mu.Unlock()
	if f != nil {
		f(open, "payment is down")
	}
}

// F-F07: an open breaker cancels the consumer; nothing is dead-lettered and our
// attempts stay; after it all are handled.
func TestOpenBreakerStopsTheIntake(t *testing.T) {
	for _, queue := range []memory.QueueConfig{{}, {CountsReturns: true, DeliveryLimit: 5, DeadLetter: "dead"}, {SettleLinger: 10 * time.Millisecond}} {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				b.Delay(memory.OpCancel, 10*time.Millisecond)
				var bodies []string
				for i := range 1000 {
					bodies = append(bodies, fmt.Sprintf("k%d:%d", i%50, i))
				}
				publish(t, b, "q", bodies...)
				k := &breaker{}
				var handled atomic.Int32
				c := start(t, b.Queue("q", queue), handle(func(d *longshore.Delivery) error {
					wait(10 * time.Millisecond)
					handled.Add(1)
					return nil
				}), container.Config{Order: order, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 5, Max: 5},
					DeadLetter: container.DeadLetter{To: "dead2"}, Redelivery: container.Redelivery{MaxAttempts: 1}})
				for range 3 {
					wait(200 * time.Millisecond)
					k.set(true)
					wait(time.Second)
					at := handled.Load()
					wait(time.Minute)
					if n := b.Inspect("q").Consumers; n != 0 || handled.Load() != at {
						t.Errorf("%d consumers while held, %d handled", n, handled.Load()-at)
					}
					if st := c.Stats(); st.Ready || !st.Live || !strings.Contains(st.Reason, "held by breaker: payment is down") {
						t.Errorf("%+v", st)
					}
					k.set(false)
				}
				wait(10 * time.Minute)
				stop(t, c)
				if handled.Load() != 1000 || b.Inspect("dead").Published+b.Inspect("dead2").Published != 0 || b.Inspect("q").Acked != 1000 {
					t.Errorf("%d handled, %s, dead %d + %d", handled.Load(), held(b, "q"), b.Inspect("dead").Published, b.Inspect("dead2").Published)
				}
				if b.Connections() != 0 {
					t.Errorf("%d connections left", b.Connections())
				}
			})
		}
	}
}

// A handler that runs while the breaker opens settles on the old consumer.
func TestHandlerThatOutlivesAHoldSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "long", "short")
		k := &breaker{}
		var handled seen
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Body) == "long" {
				wait(20 * time.Second)
			}
			handled.add(string(d.Body))
			return nil
		}), container.Config{Workers: container.Workers{Max: 1}, Middleware: []longshore.Middleware{k}})
		wait(time.Second)
		k.set(true)
		wait(time.Second)
		k.set(false)
		wait(time.Minute)
		if got := fmt.Sprint(handled.all()); got != "[long short]" {
			t.Error(got)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 2")
	})
}
