package container_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// keyed are n bodies of the keys k0 … k(keys-1), in turn.
func keyed(n, keys int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("k%d:%d", i%keys, i)
	}
	return bodies
}

// inOrder says whether the bodies of each key came in their order, each once.
func inOrder(t *testing.T, got []string, n int) {
	t.Helper()
	last := map[string]int{}
	for _, body := range got {
		key, num, _ := strings.Cut(body, ":")
		var i int
		_, _ = fmt.Sscan(num, &i)
		if at, ok := last[key]; ok && i <= at {
			t.Errorf("%s came after %s:%d", body, key, at)
		}
		last[key] = i
	}
	if len(got) != n {
		t.Errorf("%d handled, want %d", len(got), n)
	}
}

// F-F07: an open breaker leaves the single active consumer its role: the standby gets
// nothing, what was received waits here and counts nowhere, and the order holds.
func TestHoldKeepsTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Queue("q", memory.QueueConfig{SingleActive: true, CountsReturns: true, DeliveryLimit: 2, DeadLetter: "dead"})
		publish(t, b, "q", keyed(300, 7)...)
		k := &breaker{}
		var got seen
		var busy sync.Map
		var again, other atomic.Int32
		c := start(t, src, handle(func(d *longshore.Delivery) error {
			if d.Attempt > 1 || d.Origin.Redelivered {
				again.Add(1)
			}
			wait(20 * time.Millisecond)
			if _, tried := busy.LoadOrStore(d.ID, true); !tried && strings.HasSuffix(d.ID, "1") {
				return longshore.Release(errors.New("the lock is busy"), time.Second)
			}
			got.add(string(d.Body))
			return nil
		}), container.Config{Order: container.ByKey, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 4, Max: 4}})
		standby := start(t, src, handle(func(*longshore.Delivery) error { other.Add(1); return nil }), container.Config{Order: container.ByKey})
		for range 5 {
			wait(110 * time.Millisecond)
			k.set(true)
			wait(100 * time.Millisecond)
			before := got.len()
			wait(5 * time.Minute)
			if st := c.Stats(); got.len() != before || st.State != container.StatePaused || !strings.Contains(st.Reason, "held by breaker: payment is down") || st.Ready || !st.Live || st.InFlight == 0 {
				t.Errorf("%d handled while held, %+v", got.len()-before, st)
			}
			if why := c.Bottleneck(); why.By != container.ByHold {
				t.Errorf("%+v", why)
			}
			if n := b.Inspect("q").Consumers; n != 2 {
				t.Errorf("%d consumers while held", n)
			}
			k.set(false)
		}
		wait(time.Minute)
		inOrder(t, got.all(), 300)
		if st := c.Stats(); other.Load()+again.Load() != 0 || st.Generation != 1 || !standby.Stats().Standby {
			t.Errorf("%d handled by the standby, %d came again, %+v", other.Load(), again.Load(), st)
		}
		stop(t, c)
		stop(t, standby)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 300")
	})
}

// F-F07: where a hold is at its end before the consumer was told to pause, or it comes
// on top of a pause, the pause that is wished for is what counts.
func TestHoldAndPauseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &breaker{}
		var got seen
		c := start(t, b.Queue("q", memory.QueueConfig{SingleActive: true}), handle(func(d *longshore.Delivery) error { got.add(string(d.Body)); return nil }),
			container.Config{Middleware: []longshore.Middleware{k}})
		want := 0
		check := func(what string, flows bool) {
			t.Helper()
			publish(t, b, "q", "m")
			wait(time.Second)
			if want++; flows != (got.len() == want) {
				t.Errorf("%s: %d of %d handled", what, got.len(), want)
			}
		}
		k.set(true)
		k.set(false)
		check("held for a moment", true)
		k.set(true)
		c.Pause()
		check("held and paused", false)
		k.set(false)
		check("paused still", false)
		k.set(true)
		c.Resume()
		check("held still", false)
		k.set(false)
		synctest.Wait()
		check("neither", true)
		stop(t, c)
	})
}

// A stop during a hold gives back at once what waits here, in its order, and the
// next consumer has it.
func TestStopDuringAHoldGivesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Queue("q", memory.QueueConfig{SingleActive: true, CountsReturns: true})
		publish(t, b, "q", keyed(100, 5)...)
		k := &breaker{}
		var got seen
		work := handle(func(d *longshore.Delivery) error {
			wait(10 * time.Millisecond)
			got.add(string(d.Body))
			return nil
		})
		c := start(t, src, work, container.Config{Order: container.ByKey, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 4, Max: 4}})
		next := start(t, src, work, container.Config{Order: container.ByKey})
		eventually(t, "some handled", func() bool { return got.len() >= 20 })
		k.set(true)
		wait(time.Minute)
		before, held, begin := got.len(), c.Stats().InFlight, time.Now()
		rep := stop(t, c)
		if took := time.Since(begin); took > 100*time.Millisecond || held == 0 || rep.Released != held || rep.Lost+rep.Abandoned != 0 {
			t.Errorf("held %d, after %v: %v", held, took, rep)
		}
		k.set(false)
		wait(time.Minute)
		if got.len() <= before {
			t.Error("the standby got nothing")
		}
		inOrder(t, got.all(), 100)
		stop(t, next)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 100")
	})
}

// A hold, or a pause, that outlasts what the broker allows gives everything back
// before the broker takes it, and the standby goes on, in order.
func TestHoldThatOutlastsTheLeaseHandsOn(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused=", paused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				src := b.Queue("q", memory.QueueConfig{SingleActive: true, Lease: 30 * time.Minute, Prefetch: 20})
				publish(t, b, "q", keyed(100, 5)...)
				k := &breaker{}
				var got seen
				work := handle(func(d *longshore.Delivery) error {
					wait(10 * time.Millisecond)
					got.add(string(d.Body))
					return nil
				})
				var lost atomic.Int32
				c := start(t, src, work, container.Config{Order: container.ByKey, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 4, Max: 4},
					OnEvent: func(e container.Event) {
						if e.Kind == container.EventLost {
							lost.Add(1)
						}
					}})
				next := start(t, src, work, container.Config{Order: container.ByKey})
				wait(100 * time.Millisecond)
				if paused {
					c.Pause()
				} else {
					k.set(true)
				}
				wait(22 * time.Minute)
				before := got.len()
				if before >= 100 || b.Inspect("q").Consumers != 2 {
					t.Errorf("%d handled, %s", before, held(b, "q"))
				}
				wait(3 * time.Minute)
				inOrder(t, got.all(), 100)
				if n := b.Inspect("q").Consumers; n != 1 || lost.Load() != 0 {
					t.Errorf("%d consumers, %d losses", n, lost.Load())
				}
				if st := c.Stats(); paused && (st.State != container.StatePaused || !strings.HasPrefix(st.Reason, "it is paused") || !st.Ready) ||
					!paused && !strings.Contains(st.Reason, "held by ") {
					t.Errorf("%+v", st)
				}
				wait(time.Hour)
				if n := b.Inspect("q").Consumers; n != 1 {
					t.Errorf("%d consumers", n)
				}
				k.set(false)
				c.Resume()
				wait(time.Minute)
				if n := b.Inspect("q").Consumers; n != 2 || c.State() != container.StateRunning || !c.Stats().Standby {
					t.Errorf("%d consumers, %+v", n, c.Stats())
				}
				stop(t, next)
				publish(t, b, "q", "last")
				wait(time.Second)
				if all := got.all(); !slices.Contains(all, "last") {
					t.Error("it did not take over")
				}
				stop(t, c)
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 101")
			})
		})
	}
}

// While a handler of ours runs the role is not given up, and trials that fail do not
// begin the time anew.
func TestRoleIsKeptWhileAHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Queue("q", memory.QueueConfig{SingleActive: true, Lease: time.Hour})
		k := &breaker{}
		oneLane := container.OrderFunc(func(*longshore.Delivery) string { return "all" })
		work := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			wait(50 * time.Minute)
			return nil
		})
		c := start(t, src, work, container.Config{Order: oneLane, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 2, Max: 2}})
		var other seen
		next := start(t, src, handle(func(d *longshore.Delivery) error { other.add(string(d.Body)); return nil }), container.Config{Order: oneLane})
		publish(t, b, "q", "a", "b", "c")
		wait(time.Minute)
		for range 50 { // trials, by which nothing is started: the first one runs
			k.set(true)
			wait(59 * time.Second)
			k.set(false)
		}
		k.set(true)
		if all := other.all(); len(all) != 0 {
			t.Errorf("handled by the standby beside ours: %v", all)
		}
		wait(5 * time.Minute)
		if got := fmt.Sprint(other.all()); got != "[b c]" {
			t.Error(got)
		}
		stop(t, c)
		stop(t, next)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 3")
	})
}

// F-F07: a broadcast misses nothing because a breaker was open.
func TestHeldBroadcastMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &breaker{}
		var got seen
		c := start(t, b.Broadcast("topic", memory.BroadcastConfig{}), handle(func(d *longshore.Delivery) error { got.add(string(d.Body)); return nil }),
			container.Config{Middleware: []longshore.Middleware{k}})
		synctest.Wait()
		k.set(true)
		wait(time.Minute)
		publish(t, b, "topic", numbered(50)...)
		wait(time.Minute)
		k.set(false)
		wait(time.Second)
		if got.len() != 50 {
			t.Errorf("%d of 50 handled", got.len())
		}
		stop(t, c)
	})
}

// A pause that outlasts the lease costs a plain consumer nothing either: what the
// transport has received goes back in time.
func TestLongPauseLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(100)...)
		var lost atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Lease: 30 * time.Minute, Prefetch: 50}), handle(func(*longshore.Delivery) error { wait(time.Second); return nil }),
			container.Config{OnEvent: func(e container.Event) {
				if e.Kind == container.EventLost {
					lost.Add(1)
				}
			}})
		wait(3500 * time.Millisecond)
		c.Pause()
		wait(time.Hour)
		if st := c.Stats(); lost.Load() != 0 || b.Inspect("q").Unsettled != 0 || st.State != container.StatePaused || !st.Ready || len(st.Reopens) != 0 {
			t.Errorf("%d lost, %s, %+v", lost.Load(), held(b, "q"), st)
		}
		c.Resume()
		wait(10 * time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 100")
	})
}
