package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// near says whether a share is about what it should be: it is looked at now and then.
func near(got, want float64) bool { return got > want-0.2 && got < want+0.2 }

func TestConsumerCapacityIsOneWithoutTrafficAndZeroWithoutAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		k := &breaker{}
		g := newGate(-1, 0)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }),
			container.Config{Middleware: []longshore.Middleware{k}, Throttle: g, Reopen: container.Backoff{Initial: time.Minute}})
		want := func(what string, capacity float64, accepting bool) {
			t.Helper()
			if st := c.Stats(); st.ConsumerCapacity != capacity || st.Accepting != accepting {
				t.Errorf("%s: capacity %v, accepting %v", what, st.ConsumerCapacity, st.Accepting)
			}
		}
		want("at once", 1, true)
		wait(time.Minute)
		want("idle", 1, true)
		c.Pause()
		wait(2 * time.Minute)
		if st := c.Stats(); st.ConsumerCapacity > 0.01 || st.Accepting {
			t.Errorf("paused: %v, %v", st.ConsumerCapacity, st.Accepting)
		}
		c.Resume()
		wait(5 * time.Minute)
		k.set(true)
		wait(time.Second)
		want("breaker open", 0, false)
		k.set(false)
		wait(time.Second)
		want("breaker closed again", 1, true)
		g.set(0)
		wait(time.Second)
		if st := c.Stats(); st.Accepting || st.Permits != 0 || st.Rate != -1 {
			t.Errorf("throttled to 0: %+v", st)
		}
		g.set(5)
		wait(time.Second)
		b.FailOpen("q", 1, &longshore.Error{Code: longshore.CodeUnreachable})
		b.Drop("q")
		wait(time.Second)
		want("broker away", 0, false)
		wait(3 * time.Minute)
		want("back", 1, true)
		stop(t, c)
		want("stopped", 0, false)
	})
}

// A window that is full half of the time: bursts of twice what can be held.
func TestConsumerCapacityIsTheShareOfTimeWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c := start(t, b.Queue("q", memory.QueueConfig{Prefetch: 1}), handle(func(*longshore.Delivery) error { wait(time.Second); return nil }),
			container.Config{Workers: container.Workers{Max: 1}, Lookahead: -1})
		for range 30 {
			publish(t, b, "q", "x")
			wait(2 * time.Second)
		}
		if got := c.Stats().ConsumerCapacity; !near(got, 0.5) {
			t.Errorf("busy every other second: %v", got)
		}
		publish(t, b, "q", numbered(60)...)
		wait(45 * time.Second)
		if got := c.Stats().ConsumerCapacity; !near(got, 0) {
			t.Errorf("saturated: %v", got)
		}
		wait(2 * time.Minute)
		if got := c.Stats().ConsumerCapacity; !near(got, 1) {
			t.Errorf("idle again: %v", got)
		}
		stop(t, c)
	})
}

// F-N13: workers that are busy all the time leave no capacity, however much room there is
// for messages that wait for them; a scale-out is decided by this number.
func TestConsumerCapacityIsZeroWhileAllWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(5000)...)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(100 * time.Millisecond); return nil }),
			container.Config{Workers: container.Workers{Min: 4, Max: 4}, Lookahead: 64})
		wait(30 * time.Second)
		if got := c.Stats().ConsumerCapacity; got > 0.05 {
			t.Errorf("capacity %v while all workers are busy and thousands wait", got)
		}
		stop(t, c)
	})
}

// F-N13: a generation is a subscription, as docs, events and logs say; attempts to open
// that fail are none.
func TestGenerationCountsSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.FailOpen("q", 3, &longshore.Error{Code: longshore.CodeUnreachable})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{})
		wait(time.Minute)
		if got := c.Stats().Generation; got != 1 {
			t.Errorf("generation %d after three refusals and one subscription", got)
		}
		b.Drop("q")
		wait(time.Minute)
		if got := c.Stats().Generation; got != 2 {
			t.Errorf("generation %d after one more", got)
		}
		stop(t, c)
	})
}
