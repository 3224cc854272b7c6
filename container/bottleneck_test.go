package container_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/memory"
)

// One row for each thing that can limit: what stops everything comes first.
func TestWhatLimitsNow(t *testing.T) {
	limit := func(name string) func(*container.Stats, *container.Pressure) {
		return func(st *container.Stats, _ *container.Pressure) { st.Scaling.Limit, st.Scaling.Knee = name, 8 }
	}
	type set = func(*container.Stats, *container.Pressure)
	for _, row := range []struct {
		by, text string
		set      set
	}{
		{"", "nothing: no work waits", func(st *container.Stats, _ *container.Pressure) { st.Busy, st.ReadyToStart = 0, 0 }},
		{"", "nothing: 5 of 10 workers are busy", func(*container.Stats, *container.Pressure) {}},
		{container.ByState, "it was not started", func(st *container.Stats, _ *container.Pressure) { st.State = container.StateNew }},
		{container.ByState, "it is draining", func(st *container.Stats, _ *container.Pressure) { st.State = container.StateDraining }},
		{container.ByState, "it is paused", func(st *container.Stats, _ *container.Pressure) { st.State, st.Permits = container.StatePaused, 0 }},
		{container.ByHold, "held by breaker: ledger: 10 of 10 calls failed", func(st *container.Stats, _ *container.Pressure) {
			st.State, st.HeldBy = container.StateRecovering, "breaker: ledger: 10 of 10 calls failed"
		}},
		{container.ByBroker, "login refused", func(st *container.Stats, _ *container.Pressure) {
			st.State, st.Reason = container.StateRecovering, "recovering: login refused"
		}},
		{container.ByStandby, "another consumer is the active one", func(st *container.Stats, _ *container.Pressure) { st.Standby = true }},
		{container.ByPartitions, "no partition is assigned", func(_ *container.Stats, p *container.Pressure) { p.Partitions = 0 }},
		{container.ByPermits, "0 permits", func(st *container.Stats, _ *container.Pressure) { st.Permits = 0 }},
		{container.ByPermits, "permits: 5 of 5 are in use", func(st *container.Stats, _ *container.Pressure) { st.Permits = 5 }},
		{container.ByPermits, "permits: 5 of 20", func(st *container.Stats, p *container.Pressure) { st.Permits = 20; limit("permits")(st, p) }},
		{container.ByRate, "rate 0", func(st *container.Stats, _ *container.Pressure) { st.Rate = 0 }},
		{container.ByRate, "rate of 2.5 per second", func(st *container.Stats, _ *container.Pressure) { st.Rate = 2.5 }},
		{container.ByStuck, "2 of 10 handlers are stuck, the oldest for 12m0s", func(st *container.Stats, _ *container.Pressure) { st.Stuck, st.Oldest = 2, 12*time.Minute }},
		{container.ByStuck, "5 calls run and none ends", limit(autoscale.LimitStalled)},
		{container.ByStuck, "1 call runs and none ends", func(st *container.Stats, p *container.Pressure) { st.Busy = 1; limit(autoscale.LimitStalled)(st, p) }},
		{container.ByStuck, "5 calls run and none ended in the last 8s, the oldest for 16s", func(st *container.Stats, p *container.Pressure) {
			st.Oldest, p.Old = 16*time.Second, 5
			limit(autoscale.LimitPace)(st, p)
		}},
		{container.ByPolicy, "step by step", func(st *container.Stats, p *container.Pressure) { // one began lately: others may end too
			st.Oldest, p.Old = 16*time.Second, 4
			limit(autoscale.LimitPace)(st, p)
		}},
		{container.ByParking, "parking is full: 160 retries", func(st *container.Stats, p *container.Pressure) { p.ParkingFull, st.Parked = true, 160 }},
		{container.ByAlarm, "blocks publishers", func(_ *container.Stats, p *container.Pressure) { p.Blocked = true }},
		{container.ByFailures, "nearly every call fails", limit(autoscale.LimitFailing)},
		{container.ByHotKey, `key "c-91" holds 62 % of the window`, func(st *container.Stats, p *container.Pressure) { st.HotShare, st.Queued, p.HotKey = 0.62, 12, "c-91" }},
		{container.ByHotKey, "one key or partition holds 50 %", func(st *container.Stats, p *container.Pressure) {
			st.HotShare, st.Queued, st.Busy = 0.5, 12, 10
			limit(autoscale.LimitLanes)(st, p)
		}},
		{container.ByLanes, "3 keys or partitions have work", func(st *container.Stats, p *container.Pressure) { st.Lanes = 3; limit(autoscale.LimitLanes)(st, p) }},
		{container.ByKnee, "more than 8 workers brought nothing", limit(autoscale.LimitKnee)},
		{container.ByWindow, "12 messages are 64 KiB", func(st *container.Stats, p *container.Pressure) {
			st.InFlight, st.Bytes = 12, 1<<16
			limit(autoscale.LimitWindow)(st, p)
		}},
		{container.ByMax, "all 10 are there", limit(autoscale.LimitMax)},
		{container.ByMax, "all 10 are there", func(st *container.Stats, _ *container.Pressure) { st.Busy = 10 }}, // no policy, as with {Max: 1}
		{container.ByPolicy, "it is measured whether", limit(autoscale.LimitJudging)},
	} {
		st := container.Stats{Name: "orders", State: container.StateRunning, Ready: true, Live: true, Workers: 10, Max: 10, Busy: 5, ReadyToStart: 3, Window: 20, Permits: -1, Rate: -1}
		p := container.Pressure{Partitions: -1}
		row.set(&st, &p)
		if got := container.Why(st, p); got.By != row.by || !strings.Contains(got.Text, row.text) {
			t.Errorf("%q: %q; want %q: %q", got.By, got.Text, row.by, row.text)
		}
	}
}

func TestWhyOfAContainer(t *testing.T) {
	b := memory.New(memory.Config{})
	c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }), container.Config{})
	eventually(t, "it runs", func() bool { return c.Bottleneck() == container.Bottleneck{Text: "nothing: no work waits"} })
	c.Pause()
	if got := c.Bottleneck(); got.By != container.ByState {
		t.Errorf("%+v", got)
	}
	stop(t, c)
	if got := c.Bottleneck(); got.Text != "it is stopped" {
		t.Errorf("%+v", got)
	}
}
