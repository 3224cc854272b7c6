package autoscale_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// ask gives a policy a quiet sample at a time, changed by f.
func ask(p autoscale.Scaler, at time.Duration, workers int, f func(*autoscale.Sample)) autoscale.Decision {
	s := autoscale.Sample{Now: time.Unix(1000, 0).Add(at), Dt: 500 * time.Millisecond, Min: 1, Max: 10, Workers: workers,
		BacklogAge: -1, Permits: -1, Window: -1, Lanes: -1}
	f(&s)
	return p.Next(s)
}

func active(s *autoscale.Sample) { s.ActiveTripped = 1 }
func idle(s *autoscale.Sample)   { s.IdleTripped = 3 }

func TestConsecutiveIntervals(t *testing.T) {
	p := autoscale.Consecutive{}.New()
	for _, row := range []struct {
		at            time.Duration
		workers       int
		what          func(*autoscale.Sample)
		want          int
		reason, limit string
	}{
		{0, 1, active, 2, autoscale.Saturated, ""},                    // the first need not wait
		{10 * time.Second, 2, active, 2, "", autoscale.LimitPace},     // strictly more than the interval
		{10*time.Second + 1, 2, active, 3, autoscale.Saturated, ""},   // and one at a time, however many tripped
		{11 * time.Second, 3, idle, 2, autoscale.Idle, ""},            // nor need the first to stop
		{71 * time.Second, 2, idle, 2, "", ""},                        // 60 s are not more than 60 s
		{71*time.Second + 1, 2, idle, 1, autoscale.Idle, ""},          //
		{200 * time.Second, 1, idle, 1, "", ""},                       // never below Min
		{300 * time.Second, 10, active, 10, "", autoscale.LimitMax},   // nor above Max
		{301 * time.Second, 3, func(*autoscale.Sample) {}, 3, "", ""}, // nothing tripped
		{320 * time.Second, 3, func(s *autoscale.Sample) { active(s); s.Paused = true }, 3, "", autoscale.LimitPaused},
		{340 * time.Second, 3, func(s *autoscale.Sample) { active(s); s.Permits = 3 }, 3, "", autoscale.LimitPermits},
		{341 * time.Second, 3, func(s *autoscale.Sample) { s.Permits = 2 }, 2, autoscale.FewerMay, autoscale.LimitPermits},
		{342 * time.Second, 3, func(s *autoscale.Sample) { active(s); s.Lanes = 2 }, 3, "", autoscale.LimitLanes},
		{360 * time.Second, 3, func(s *autoscale.Sample) { active(s); idle(s) }, 4, autoscale.Saturated, ""}, // busy ones win
	} {
		d := ask(p, row.at, row.workers, row.what)
		if d.Target != row.want || d.Reason != row.reason || d.Limit != row.limit {
			t.Errorf("after %v: %+v, want %d %q %q", row.at, d, row.want, row.reason, row.limit)
		}
	}
}

func TestConsecutiveSettings(t *testing.T) {
	if c := (autoscale.Consecutive{}).Cycles(); c != (autoscale.Cycles{Active: 10, Idle: 10, Wait: time.Second}) {
		t.Errorf("%+v", c)
	}
	if c := (autoscale.Consecutive{ActiveTrigger: 3, IdleTrigger: 4, ReceiveTimeout: time.Minute}).Cycles(); c != (autoscale.Cycles{Active: 3, Idle: 4, Wait: time.Minute}) {
		t.Errorf("%+v", c)
	}
	err := autoscale.Consecutive{StartInterval: -1, StopInterval: -1, ActiveTrigger: -1, IdleTrigger: -1, ReceiveTimeout: -1}.Check()
	for _, name := range []string{"StartInterval", "StopInterval", "ActiveTrigger", "IdleTrigger", "ReceiveTimeout"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
	if err := (autoscale.Consecutive{}).Check(); err != nil {
		t.Error(err)
	}
}
