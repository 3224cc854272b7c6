package container_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N34: the twelve staged incidents, each with its cause, since when, who, and what to do.
func TestTheSentenceOfEachIncident(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.Local)
	at := now.Add(-90 * time.Second)
	const since = "14:58:30"
	for name, c := range map[string]struct {
		set   func(*container.Stats, *container.Pressure)
		by    string
		words []string
		never string
	}{
		"hung handler": {func(st *container.Stats, p *container.Pressure) {
			p.Now, p.Overdue, p.Old, p.Oldest = at.Add(9*time.Second), 1, 1, container.Call{Record: "m-1", Key: "c-91", Since: at}
			st.Handler = container.Calls{P50: 10 * time.Millisecond, P99: 20 * time.Millisecond}
		}, container.ByStuck, []string{"m-1", "c-91", "9s", "20ms", since, "longshore ctl stuck orders"}, "no work"},
		"hot key": {func(st *container.Stats, p *container.Pressure) { st.HotShare, st.Queued, p.HotKey = 0.62, 12, "c-91" },
			container.ByHotKey, []string{`"c-91"`, "62 %", "faster handler"}, ""},
		"poison storm": {func(st *container.Stats, p *container.Pressure) {
			st.Busy, st.ReadyToStart, st.Parked, p.DeadLetter = 0, 0, 40, "orders.dlq"
			p.Failing = container.Failing{Share: 0.96, Code: longshore.CodeUndecodable, Text: "invalid character '<'", Since: at}
		}, container.ByFailures, []string{"96 %", "undecodable", "invalid character '<'", since, "longshore ctl inflight orders", "orders.dlq"}, "no work"},
		"memory alarm": {func(_ *container.Stats, p *container.Pressure) { p.Blocked, p.BlockedAt = true, at },
			container.ByAlarm, []string{"blocks publishers", since, "rabbitmq-diagnostics"}, ""},
		"forgotten throttle": {func(st *container.Stats, p *container.Pressure) {
			st.Permits, p.Throttled = 0, longshore.Intervention{By: "anna", Reason: "ledger down", Since: at}
		}, container.ByPermits, []string{"0 permits", "anna", "ledger down", since, "longshore ctl throttle orders --clear"}, ""},
		"forgotten throttle of a fleet": {func(st *container.Stats, p *container.Pressure) {
			st.Rate, p.Throttled = 2, longshore.Intervention{By: "ben", Since: at, Fleet: true}
		}, container.ByRate, []string{"ben", "fleet", since, "--fleet --clear"}, ""},
		"forgotten pause": {func(st *container.Stats, p *container.Pressure) {
			st.State, p.Paused = container.StatePaused, longshore.Intervention{By: "anna", Reason: "deploy", Since: at}
		}, container.ByState, []string{"paused by anna (deploy)", since, "longshore ctl resume orders"}, ""},
		"slow downstream": {func(st *container.Stats, p *container.Pressure) {
			st.Busy, st.Scaling.Limit, p.SlowAt = 10, autoscale.LimitMax, at
			st.Handler = container.Calls{P50: 6 * time.Second, P99: 7 * time.Second, Usual: 200 * time.Millisecond}
		}, container.BySlow, []string{"6s", "30 times", "200ms", since, "longshore ctl throttle orders"}, "Workers.Max"},
		"queue remade": {func(st *container.Stats, p *container.Pressure) {
			st.State, st.Reason, p.Down, p.Advice = container.StateRecovering, "recovering: already exists with other arguments", at, "delete it or change Declare"
		}, container.ByBroker, []string{"other arguments", since, "delete it or change Declare"}, ""},
		"revoked credentials": {func(st *container.Stats, p *container.Pressure) {
			st.State, st.Reason, p.Down = container.StateRecovering, "recovering: login refused", at
		}, container.ByBroker, []string{"login refused", since, "longshore doctor"}, ""},
		"wrong vhost": {func(st *container.Stats, p *container.Pressure) {
			st.Busy, st.ReadyToStart, st.Received, st.Since, st.Subscribed = 0, 0, 0, at, at
			p.Declared, p.Address = true, "rabbit:5672/wrong"
		}, container.ByUnused, []string{"nothing was ever received", "rabbitmq orders-in", "rabbit:5672/wrong", since, "Declare creates", "longshore doctor"}, "no work"},
		"blocked partition": {func(st *container.Stats, _ *container.Pressure) {
			st.Busy, st.ReadyToStart, st.Parked = 0, 0, 1
			st.BlockedPartitions = []transport.BlockedPartition{{Topic: "t", Partition: 2, Position: 7, Key: []byte("k\x00"), Since: at, Behind: 3, Window: 100}}
		}, container.ByBlocked, []string{"partition 2 of t", "offset 7", "0x6b00", since, "dead-letter"}, "workers"},
		"an older version takes messages": {func(st *container.Stats, _ *container.Pressure) { // only doctor can know: see its own test
			st.Busy, st.ReadyToStart, st.Standby, st.Subscribed = 0, 0, true, at
		}, container.ByStandby, []string{"another consumer", since}, ""},
		"full parking": {func(st *container.Stats, p *container.Pressure) {
			st.Parked, p.ParkingFull, p.ParkingAt = 160, true, at
		},
			container.ByParking, []string{"160 retries", since, "longshore ctl inflight orders"}, ""},
	} {
		st := container.Stats{Name: "orders", Transport: "rabbitmq", Source: "orders-in", State: container.StateRunning, Ready: true, Live: true,
			Workers: 10, Max: 10, Busy: 5, ReadyToStart: 3, Window: 20, Permits: -1, Rate: -1, Received: 9}
		p := container.Pressure{Partitions: -1, Now: now}
		c.set(&st, &p)
		got := container.Why(st, p)
		if got.By != c.by || c.never != "" && strings.Contains(got.Text, c.never) {
			t.Errorf("%s: %q: %s", name, got.By, got.Text)
		}
		for _, word := range c.words {
			if !strings.Contains(got.Text, word) {
				t.Errorf("%s: %q is not in %q", name, word, got.Text)
			}
		}
		if bare := got.Bare(); bare.Text != "" || bare.Who != "" || bare.Do != "" || bare.By != got.By {
			t.Errorf("%s: %+v", name, bare)
		}
	}
}

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
