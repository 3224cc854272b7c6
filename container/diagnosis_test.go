package container

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// busyOne is a container that does well: half of its workers are busy.
func busyOne() situation {
	return situation{Stats: Stats{Name: "orders", Transport: "rabbitmq", Source: "orders-in", Workers: 10, Max: 10, Busy: 5, ReadyToStart: 3, Window: 20, Permits: -1, Rate: -1,
		Received: 9, ConsumerCapacity: 0.5}, begun: true, axes: state.Axes{Sub: state.Open}, places: 10, partitions: -1, now: time.Now()}
}

// One row for each thing that can limit: what stops everything comes first.
func TestWhatLimitsNow(t *testing.T) {
	limit := func(name string) func(*situation) {
		return func(s *situation) { s.Scaling.Limit, s.Scaling.Knee = name, 8 }
	}
	type set = func(*situation)
	for _, row := range []struct {
		by, text string
		set      set
	}{
		{"", "nothing: no work waits", func(s *situation) { s.Busy, s.ReadyToStart = 0, 0 }},
		{"", "nothing: 5 of 10 workers are busy", func(*situation) {}},
		{ByState, "it is paused", func(s *situation) { s.axes.Holds, s.Permits = state.Operator|state.Throttle, 0 }},
		{ByHold, "held by breaker: ledger: 10 of 10 calls failed", func(s *situation) {
			s.axes.Sub, s.axes.Holds, s.HeldBy = state.Suspended, state.Middleware, "breaker: ledger: 10 of 10 calls failed"
		}},
		{ByBroker, "login refused", func(s *situation) { s.axes.Sub, s.lastErr = state.Lost, errors.New("login refused") }},
		{ByStandby, "another consumer is the active one", func(s *situation) { s.Standby = true }},
		{ByPartitions, "no partition is assigned", func(s *situation) { s.partitions = 0 }},
		{ByPermits, "0 permits", func(s *situation) { s.Permits = 0 }},
		{ByPermits, "permits: 5 of 5 are in use", func(s *situation) { s.Permits = 5 }},
		{ByPermits, "permits: 5 of 20", func(s *situation) { s.Permits = 20; limit("permits")(s) }},
		{ByRate, "rate 0", func(s *situation) { s.Rate = 0 }},
		{ByRate, "rate of 2.5 per second", func(s *situation) { s.Rate = 2.5 }},
		{ByStuck, "2 of 10 handlers are stuck, the oldest for 12m0s", func(s *situation) { s.Stuck, s.calls.stuckSince = 2, s.now.Add(-12*time.Minute) }},
		{ByStuck, "5 calls run and none ends", limit(autoscale.LimitStalled)},
		{ByStuck, "1 call runs and none ends", func(s *situation) { s.Busy = 1; limit(autoscale.LimitStalled)(s) }},
		{ByStuck, "5 calls run and none ended in the last 8s, the oldest for 16s", func(s *situation) {
			s.calls.oldest.Since, s.calls.old = s.now.Add(-16*time.Second), 5
			limit(autoscale.LimitPace)(s)
		}},
		{ByPolicy, "step by step", func(s *situation) { // one began lately: others may end too
			s.calls.oldest.Since, s.calls.old = s.now.Add(-16*time.Second), 4
			limit(autoscale.LimitPace)(s)
		}},
		{ByParking, "parking is full: 160 retries", func(s *situation) { s.parkingFull, s.Parked = true, 160 }},
		{ByAlarm, "blocks publishers", func(s *situation) { s.alarm = true }},
		{ByFailures, "nearly every call fails", limit(autoscale.LimitFailing)},
		{ByHotKey, `key "c-91" holds 62 % of the window`, func(s *situation) { s.HotShare, s.Queued, s.hotKey = 0.62, 12, "c-91" }},
		{ByHotKey, "one key or partition holds 50 %", func(s *situation) {
			s.HotShare, s.Queued, s.Busy = 0.5, 12, 10
			limit(autoscale.LimitLanes)(s)
		}},
		{ByLanes, "3 keys or partitions have work", func(s *situation) { s.Lanes = 3; limit(autoscale.LimitLanes)(s) }},
		{ByKnee, "more than 8 workers brought nothing", limit(autoscale.LimitKnee)},
		{ByWindow, "12 messages are 64 KiB", func(s *situation) {
			s.InFlight, s.Bytes = 12, 1<<16
			limit(autoscale.LimitWindow)(s)
		}},
		{ByMax, "all 10 are there", limit(autoscale.LimitMax)},
		{ByMax, "all 10 are there", func(s *situation) { s.Busy = 10 }}, // no policy, as with {Max: 1}
		{ByPolicy, "it is measured whether", limit(autoscale.LimitJudging)},
	} {
		s := busyOne()
		row.set(&s)
		if got := s.diagnose().Bottleneck; got.By != row.by || !strings.Contains(got.Text, row.text) {
			t.Errorf("%q: %q; want %q: %q", got.By, got.Text, row.by, row.text)
		}
	}
}

// F-N34: the twelve staged incidents, each with its cause, since when, who, and what to do.
func TestTheSentenceOfEachIncident(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.Local)
	at := now.Add(-90 * time.Second)
	const since = "14:58:30"
	for name, c := range map[string]struct {
		set   func(*situation)
		by    string
		words []string
		never string
	}{
		"hung handler": {func(s *situation) {
			s.now, s.calls.overdue, s.calls.old, s.calls.oldest = at.Add(9*time.Second), 1, 1, Call{Record: "m-1", Key: "c-91", Since: at}
			s.Handler = Calls{P50: 10 * time.Millisecond, P99: 20 * time.Millisecond}
		}, ByStuck, []string{"m-1", "c-91", "9s", "20ms", since, "longshore ctl stuck orders"}, "no work"},
		"hot key": {func(s *situation) { s.HotShare, s.Queued, s.hotKey = 0.62, 12, "c-91" },
			ByHotKey, []string{`"c-91"`, "62 %", "faster handler"}, ""},
		"poison storm": {func(s *situation) {
			s.Busy, s.ReadyToStart, s.Parked, s.deadLetter = 0, 0, 40, "orders.dlq"
			s.failing = Failing{Share: 0.96, Code: longshore.CodeUndecodable, Text: "invalid character '<'", Since: at}
		}, ByFailures, []string{"96 %", "undecodable", "invalid character '<'", since, "longshore ctl inflight orders", "orders.dlq"}, "no work"},
		"memory alarm": {func(s *situation) { s.alarm, s.alarmAt = true, at },
			ByAlarm, []string{"blocks publishers", since, "rabbitmq-diagnostics"}, ""},
		"forgotten throttle": {func(s *situation) {
			s.Permits, s.throttled = 0, longshore.Intervention{By: "anna", Reason: "ledger down", Since: at}
		}, ByPermits, []string{"0 permits", "anna", "ledger down", since, "longshore ctl throttle orders --clear"}, ""},
		"forgotten throttle of a fleet": {func(s *situation) {
			s.Rate, s.throttled = 2, longshore.Intervention{By: "ben", Since: at, Fleet: true}
		}, ByRate, []string{"ben", "fleet", since, "--fleet --clear"}, ""},
		"forgotten pause": {func(s *situation) {
			s.axes.Holds, s.paused = state.Operator, longshore.Intervention{By: "anna", Reason: "deploy", Since: at}
		}, ByState, []string{"paused by anna (deploy)", since, "longshore ctl resume orders"}, ""},
		"slow downstream": {func(s *situation) {
			s.Busy, s.Scaling.Limit, s.slowAt = 10, autoscale.LimitMax, at
			s.Handler = Calls{P50: 6 * time.Second, P99: 7 * time.Second, Usual: 200 * time.Millisecond}
		}, BySlow, []string{"6s", "30 times", "200ms", since, "longshore ctl throttle orders"}, "Workers.Max"},
		"queue remade": {func(s *situation) {
			s.axes.Sub, s.downAt = state.Lost, at
			s.lastErr = &longshore.Error{Code: longshore.CodeMismatch, Op: "open orders-in", Err: errors.New("already exists with other arguments"), Hint: "delete it or change Declare"}
		}, ByBroker, []string{"other arguments", since, "delete it or change Declare"}, ""},
		"revoked credentials": {func(s *situation) {
			s.axes.Sub, s.downAt, s.lastErr = state.Lost, at, errors.New("login refused")
		}, ByBroker, []string{"login refused", since, "longshore doctor"}, ""},
		"wrong vhost": {func(s *situation) {
			s.Busy, s.ReadyToStart, s.Received, s.Since, s.Subscribed = 0, 0, 0, at, at
			s.declared, s.address = true, "rabbit:5672/wrong"
		}, ByUnused, []string{"nothing was ever received", "rabbitmq orders-in", "rabbit:5672/wrong", since, "Declare creates", "longshore doctor"}, "no work"},
		"blocked partition": {func(s *situation) {
			s.Busy, s.ReadyToStart, s.Parked = 0, 0, 1
			s.BlockedPartitions = []transport.BlockedPartition{{Topic: "t", Partition: 2, Position: 7, Key: []byte("k\x00"), Since: at, Behind: 3, Window: 100}}
		}, ByBlocked, []string{"partition 2 of t", "offset 7", "0x6b00", since, "dead-letter"}, "workers"},
		"an older version takes messages": {func(s *situation) { // only doctor can know: see its own test
			s.Busy, s.ReadyToStart, s.Standby, s.Subscribed = 0, 0, true, at
		}, ByStandby, []string{"another consumer", since}, ""},
		"full parking": {func(s *situation) {
			s.Parked, s.parkingFull, s.parkingAt = 160, true, at
		},
			ByParking, []string{"160 retries", since, "longshore ctl inflight orders"}, ""},
	} {
		s := busyOne()
		s.now = now
		c.set(&s)
		st := s.diagnose()
		got := st.Bottleneck
		if st.Reason != "" && st.Reason != got.Text {
			t.Errorf("%s: a probe says %q, the sentence is %q", name, st.Reason, got.Text)
		}
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

// The state, the probes and the sentence are derived together, and a probe that has
// something to say says the sentence.
func TestProbesFollowTheCause(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.Local)
	fleet := longshore.Intervention{By: "ben", Fleet: true}
	for _, row := range []struct {
		name                         string
		set                          func(*situation)
		state                        State
		live, ready, said, accepting bool
	}{
		{"well", func(*situation) {}, StateRunning, true, true, false, true},
		{"never started", func(s *situation) { *s = situation{partitions: -1} }, StateNew, true, false, true, false},
		{"starting", func(s *situation) { s.axes.Sub = state.Starting }, StateStarting, true, false, true, false},
		{"held before the start", func(s *situation) {
			s.axes.Sub, s.axes.Holds, s.HeldBy = state.Starting, state.Middleware, "breaker: b"
		}, StateStarting, true, false, true, false},
		{"failed", func(s *situation) {
			s.axes = state.Axes{Sub: state.Failed, Stop: state.Stopped}
			s.lastErr = errors.New("no queue")
		}, StateStopped, false, false, true, false},
		{"draining", func(s *situation) { s.axes.Stop = state.ReturnOnly }, StateDraining, true, false, true, false},
		{"stopped", func(s *situation) { s.axes.Stop = state.Stopped }, StateStopped, true, false, true, false},
		{"lost", func(s *situation) { s.axes.Sub = state.Lost }, StateRecovering, true, false, true, false},
		{"held", func(s *situation) {
			s.axes.Sub, s.axes.Holds, s.HeldBy = state.Suspended, state.Middleware, "breaker: b"
		}, StateRecovering, true, false, true, false},
		{"held in place", func(s *situation) { s.axes.Holds, s.HeldBy, s.keepsPlace = state.Middleware, "breaker: b", true }, StatePaused, true, false, true, false},
		{"works off a hold", func(s *situation) { s.axes.Sub, s.worksOff = state.Retained, true }, StateRunning, true, true, false, false},
		{"paused", func(s *situation) { s.axes.Holds = state.Operator }, StatePaused, true, true, true, false},
		{"paused, while handlers are stuck", func(s *situation) { s.axes.Holds, s.Stuck = state.Operator, 10 }, StatePaused, true, true, true, false},
		{"yielded by a pause", func(s *situation) { s.axes = state.Axes{Sub: state.Yielded, Holds: state.Operator} }, StatePaused, true, true, true, false},
		{"throttled to 0", func(s *situation) { s.Permits, s.axes.Holds = 0, state.Throttle }, StateRunning, true, true, true, false},
		{"the gate is ahead of the axes", func(s *situation) { s.Rate = 0 }, StateRunning, true, true, true, false},
		{"cannot open while throttled to 0", func(s *situation) { s.axes, s.Permits = state.Axes{Sub: state.Suspended, Holds: state.Throttle}, 0 }, StatePaused, true, true, true, false},
		{"throttled by configuration", func(s *situation) { s.Permits = 5 }, StateRunning, true, true, false, true},
		{"throttled by a person", func(s *situation) { s.Permits, s.throttled = 5, fleet }, StateRunning, true, true, true, true},
		{"a breaker tries", func(s *situation) { s.doubts = true }, StateRunning, true, true, false, false},
		{"standby", func(s *situation) { s.Standby = true }, StateRunning, true, true, false, true},
		{"parking is full", func(s *situation) { s.parkingFull = true }, StateRunning, true, false, true, true},
		{"most fail", func(s *situation) { s.failing.Share = 0.9 }, StateRunning, true, true, true, true},
		{"most fail, and parking is full", func(s *situation) { s.failing.Share, s.parkingFull = 0.9, true }, StateRunning, true, false, true, true},
		{"some are stuck", func(s *situation) { s.Stuck = 2 }, StateRunning, true, true, true, true},
		{"all are stuck", func(s *situation) { s.Stuck = 10 }, StateRunning, true, false, true, true},
		{"all are stuck under a throttle of 0", func(s *situation) { s.Stuck, s.Permits = 10, 0 }, StateRunning, true, false, true, false},
		{"letters that cannot be moved", func(s *situation) { s.unmovable = "1 message" }, StateRunning, true, false, true, true},
		{"blocked keys", func(s *situation) { s.aside = 1 }, StateRunning, true, true, true, true},
		{"alarm", func(s *situation) { s.alarm = true }, StateRunning, true, true, true, true},
		{"released again and again", func(s *situation) { s.loops.Messages = 1 }, StateRunning, true, true, true, true},
		{"a partition full", func(s *situation) {
			s.BlockedPartitions = []transport.BlockedPartition{{Behind: 9, Window: 10, Since: now}}
		}, StateRunning, true, true, true, true},
		{"a partition kept for long", func(s *situation) {
			s.BlockedPartitions = []transport.BlockedPartition{{Behind: 1, Window: 10, Since: now.Add(-time.Hour)}}
		}, StateRunning, true, true, true, true},
		{"a partition waits for a retry", func(s *situation) {
			s.BlockedPartitions = []transport.BlockedPartition{{Behind: 1, Window: 10, Since: now.Add(-9 * time.Second)}}
		}, StateRunning, true, true, false, true},
		{"at the maximum", func(s *situation) { s.Scaling.Limit = autoscale.LimitMax }, StateRunning, true, true, false, true},
		{"nothing ever came", func(s *situation) { s.Busy, s.ReadyToStart, s.Received, s.Subscribed = 0, 0, 0, now.Add(-time.Hour) }, StateRunning, true, true, false, true},
	} {
		s := busyOne()
		s.now = now
		row.set(&s)
		st := s.diagnose()
		got := fmt.Sprint(st.State, st.Live, st.Ready, st.Reason != "", st.Accepting)
		if want := fmt.Sprint(row.state, row.live, row.ready, row.said, row.accepting); got != want {
			t.Errorf("%s: %s, want %s: %s", row.name, got, want, st.Bottleneck.Text)
		}
		if st.Reason != "" && st.Reason != st.Bottleneck.Text {
			t.Errorf("%s: a probe says %q, the sentence is %q", row.name, st.Reason, st.Bottleneck.Text)
		}
		if st.State != StateRunning && st.ConsumerCapacity != 0 && row.name != "paused" && row.name != "paused, while handlers are stuck" {
			t.Errorf("%s: capacity %v", row.name, st.ConsumerCapacity)
		}
	}
}
