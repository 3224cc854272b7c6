package container_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

// tenSeconds runs a container in virtual time for ten seconds of an incident and returns what
// is said of it.
func tenSeconds(t *testing.T, cfg container.Config, msgs int, h func(*longshore.Delivery) error, look func(*container.ListenerContainer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Declare("q")
		for i := range msgs {
			send(t, b, "q", &longshore.Message{Key: []byte{'k', byte('a' + i%20)}, Body: []byte("x")})
		}
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(h), cfg)
		wait(10 * time.Second)
		look(c)
		stop(t, c)
	})
}

// F-N34: within ten seconds, by the container itself.
func TestAnIncidentIsNamedWithinTenSeconds(t *testing.T) {
	t.Run("one handler hangs, the others go on", func(t *testing.T) {
		tenSeconds(t, container.Config{Workers: container.Workers{Min: 1, Max: 1}}, 1, func(*longshore.Delivery) error { wait(12 * time.Second); return nil }, func(c *container.ListenerContainer) {
			why, st := c.Bottleneck(), c.Stats()
			if why.By != container.ByStuck || why.Since.IsZero() || st.Oldest < 9*time.Second || len(c.Stuck()) != 1 {
				t.Errorf("%+v, oldest %v, %d in stuck", why, st.Oldest, len(c.Stuck()))
			}
		})
	})
	t.Run("poison storm", func(t *testing.T) {
		tenSeconds(t, container.Config{Order: container.ByKey, Redelivery: container.Redelivery{MaxAttempts: 10, Backoff: container.Backoff{Initial: time.Second, Max: time.Minute}}}, 40, func(*longshore.Delivery) error { return errors.New("no such account") }, func(c *container.ListenerContainer) {
			why, st := c.Bottleneck(), c.Stats()
			if why.By != container.ByFailures || why.Since.IsZero() || !strings.Contains(why.Text, "no such account") || st.FailedBy[longshore.CodeHandler] < 40 {
				t.Errorf("%+v; %v", why, st.FailedBy)
			}
			if st.Oldest < 5*time.Second {
				t.Errorf("what waits for its retry has the age %v: %d parked, %d in flight", st.Oldest, st.Parked, st.InFlight)
			}
		})
	})
	t.Run("nothing was ever received", func(t *testing.T) {
		tenSeconds(t, container.Config{}, 0, func(*longshore.Delivery) error { return nil }, func(c *container.ListenerContainer) {
			if why := c.Bottleneck(); why.By != container.ByUnused || why.Since.IsZero() {
				t.Errorf("%+v", why)
			}
		})
	})
	t.Run("pause and throttle", func(t *testing.T) {
		l := throttle.NewUnlimited()
		tenSeconds(t, container.Config{Throttle: l}, 3, func(*longshore.Delivery) error { return nil }, func(c *container.ListenerContainer) {
			none := 0
			l.Override(throttle.Override{Permits: &none, By: "anna", Reason: "ledger down"})
			if why := c.Bottleneck(); why.By != container.ByPermits || why.Who != "anna" || why.Since.IsZero() {
				t.Errorf("%+v", why)
			}
			l.ClearOverride()
			c.PauseBy(longshore.Intervention{By: "ben", Reason: "deploy"})
			if why := c.Bottleneck(); why.By != container.ByState || why.Who != "ben" || why.Since.IsZero() || !strings.Contains(why.Text, "deploy") {
				t.Errorf("%+v", why)
			}
			c.Resume()
		})
	})
}

// F-N34: a downstream that became slow is not helped by more workers.
func TestASlowDownstreamIsNoReasonForMoreWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		took := 100 * time.Millisecond
		began := time.Now()
		b.Declare("q")
		for range 3000 {
			publish(t, b, "q", "x")
		}
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			if time.Since(began) > 30*time.Second {
				wait(10 * took)
			}
			wait(took)
			return nil
		}), container.Config{Workers: container.Workers{Min: 4, Max: 4}})
		wait(25 * time.Second)
		if st := c.Stats(); st.Handler.P50 < took || st.Handler.P50 > 2*took || st.Handler.Grown() {
			t.Errorf("%+v", st.Handler)
		}
		wait(35 * time.Second)
		if why := c.Bottleneck(); why.By != container.BySlow || why.Since.IsZero() {
			t.Errorf("%+v", why)
		}
		stop(t, c)
	})
}
