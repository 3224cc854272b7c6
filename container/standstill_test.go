package container_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// standstills runs f for each way in which work is not allowed to start from the
// beginning, at each kind of queue; end allows it.
func standstills(t *testing.T, f func(t *testing.T, b *memory.Broker, q memory.QueueConfig, cfg container.Config, end func(*container.ListenerContainer))) {
	ways := map[string]func() (container.Config, func(*container.ListenerContainer)){
		"paused": func() (container.Config, func(*container.ListenerContainer)) {
			return container.Config{StartPaused: true}, func(c *container.ListenerContainer) { c.Resume() }
		},
		"no permits": func() (container.Config, func(*container.ListenerContainer)) {
			g := newGate(0, 0)
			return container.Config{Throttle: g}, func(*container.ListenerContainer) { g.set(5) }
		},
		"open breaker": func() (container.Config, func(*container.ListenerContainer)) {
			k := openBreaker{&breaker{}}
			return container.Config{Middleware: []longshore.Middleware{k}}, func(*container.ListenerContainer) { k.set(false) }
		},
	}
	for name, way := range ways {
		for _, q := range []memory.QueueConfig{{}, {CountsReturns: true, DeliveryLimit: 3, DeadLetter: "dead"}, {SingleActive: true, CountsReturns: true}} {
			t.Run(fmt.Sprintf("%s, counts=%t, single=%t", name, q.CountsReturns, q.SingleActive), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg, end := way()
					f(t, memory.New(memory.Config{}), q, cfg, end)
				})
			})
		}
	}
}

// F-N02: while work may not start nothing is taken from the broker, at the start and
// over any number of reconnects, so that a delivery limit is not used up; another
// instance gets everything.
func TestStandstillTakesNothing(t *testing.T) {
	standstills(t, func(t *testing.T, b *memory.Broker, q memory.QueueConfig, cfg container.Config, end func(*container.ListenerContainer)) {
		publish(t, b, "q", numbered(100)...)
		var handled, repeated atomic.Int32
		h := handle(func(d *longshore.Delivery) error {
			handled.Add(1)
			if d.Attempt > 1 {
				repeated.Add(1)
			}
			return nil
		})
		c := start(t, b.Queue("q", q), h, cfg)
		for i := range 23 {
			wait(time.Minute)
			if n := b.Inspect("q").Unsettled; n != 0 {
				t.Fatalf("%d messages taken after %d cuts", n, i)
			}
			b.Drop("q")
		}
		other := start(t, b.Queue("q", q), handle(noop), container.Config{})
		wait(time.Minute)
		stop(t, other)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 100")

		publish(t, b, "q", numbered(50)...)
		wait(time.Minute)
		if handled.Load() != 0 {
			t.Errorf("%d handled while work was not allowed to start", handled.Load())
		}
		end(c)
		wait(time.Minute)
		if handled.Load() != 50 || repeated.Load() != 0 || b.Inspect("dead").Published != 0 {
			t.Errorf("then: %d of 50 handled, %d of them again, %d dead", handled.Load(), repeated.Load(), b.Inspect("dead").Published)
		}
		stop(t, c)
	})
}

// F-N02, F-N06: a stop at a standstill starts nothing and waits for nothing, whatever
// was taken in before.
func TestStopAtAStandstillStartsNothing(t *testing.T) {
	standstills(t, func(t *testing.T, b *memory.Broker, q memory.QueueConfig, cfg container.Config, _ func(*container.ListenerContainer)) {
		publish(t, b, "q", numbered(100)...)
		var handled atomic.Int32
		c := start(t, b.Queue("q", q), handle(func(*longshore.Delivery) error { handled.Add(1); return nil }), cfg)
		wait(time.Minute)
		b.Drop("q")
		wait(time.Minute)
		began := time.Now()
		rep := stop(t, c)
		if took := time.Since(began); took > 500*time.Millisecond || handled.Load() != 0 || rep.Bad() {
			t.Errorf("stopped after %v with %d handled: %v", took, handled.Load(), rep)
		}
		wantHeld(t, b, "q", "ready 100, unsettled 0, delayed 0, acked 0")
	})
}

// F-N02: a pause that comes while messages flow, and a throttle of 0: what the
// transport had buffered is not started by a stop.
func TestStopAfterAPauseStartsNothing(t *testing.T) {
	for _, way := range []string{"pause", "permits"} {
		for _, q := range []memory.QueueConfig{{CountsReturns: true, Prefetch: 50}, {SingleActive: true, CountsReturns: true, Prefetch: 50}} {
			t.Run(fmt.Sprintf("%s, single=%t", way, q.SingleActive), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", numbered(100)...)
					g := newGate(4, 0)
					var handled atomic.Int32
					c := start(t, b.Queue("q", q), handle(func(*longshore.Delivery) error {
						handled.Add(1)
						wait(time.Second)
						return nil
					}), container.Config{Throttle: g, Workers: container.Workers{Max: 4}})
					wait(500 * time.Millisecond)
					if way == "pause" {
						c.Pause()
					} else {
						g.set(0)
					}
					wait(time.Minute) // what was received is worked off by now, where a pause allows it
					before, began := handled.Load(), time.Now()
					rep := stop(t, c)
					if took := time.Since(began); handled.Load() != before || took > 500*time.Millisecond || rep.Bad() {
						t.Errorf("%d started during a stop of %v: %v", handled.Load()-before, took, rep)
					}
				})
			})
		}
	}
}

// F-N06: a retry that waits here does not hold up a stop, due within the drain's time
// or not: no handler runs, and it goes back.
func TestParkedRetriesDoNotHoldUpAStop(t *testing.T) {
	for _, q := range []memory.QueueConfig{{}, {CountsReturns: true}, {SingleActive: true}, {SingleActive: true, CountsReturns: true}} {
		t.Run(fmt.Sprintf("counts=%t, single=%t", q.CountsReturns, q.SingleActive), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", keyed(10, 3)...)
				var handled atomic.Int32
				c := start(t, b.Queue("q", q), handle(func(*longshore.Delivery) error {
					handled.Add(1)
					return longshore.Retry(errors.New("not yet"), 14*time.Second)
				}), container.Config{Order: container.ByKey, DrainTimeout: 20 * time.Second})
				wait(time.Second)
				before, began := handled.Load(), time.Now()
				rep := stop(t, c)
				if took := time.Since(began); took > 500*time.Millisecond || handled.Load() != before || rep.Bad() {
					t.Errorf("stopped after %v, %d more started: %v", took, handled.Load()-before, rep)
				}
				wantHeld(t, b, "q", "ready 10, unsettled 0, delayed 0, acked 0")
			})
		})
	}
}
