package container

import (
	"testing"
	"time"
)

func TestDeadlinesOnlyMoveForward(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	d := deadlines{grace: 4 * time.Second}
	d.begin(at(100), at(130), at(134))
	for _, step := range []struct{ now, soft, end, wantSoft, wantEnd int }{
		{101, 140, 150, 130, 134},
		{102, 120, 150, 120, 134},
		{103, 130, 125, 120, 125},
	} {
		d.begin(at(step.now), at(step.soft), at(step.end))
		if d.soft != at(step.wantSoft) || d.end != at(step.wantEnd) || d.begun != at(100) {
			t.Errorf("after %+v: %v to %v, begun %v", step, d.soft.Unix(), d.end.Unix(), d.begun.Unix())
		}
	}
}

func TestLastStepsOfAStop(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tc := range []struct {
		name          string
		grace, left   time.Duration
		running       int
		end           time.Duration // from now
		work          time.Duration
		flush, closed time.Duration
	}{
		{"handlers run: their grace", 4 * time.Second, time.Minute, 2, 4 * time.Second, 3500 * time.Millisecond, 3 * time.Second, 3500 * time.Millisecond},
		{"none runs: the broker's answer", 4 * time.Second, time.Minute, 0, 5 * time.Second, 4500 * time.Millisecond, 3750 * time.Millisecond, 4375 * time.Millisecond},
		{"a long grace is kept", 8 * time.Second, time.Minute, 0, 8 * time.Second, 7500 * time.Millisecond, 6 * time.Second, 7 * time.Second},
		{"the stop's own end is earlier", 4 * time.Second, 2 * time.Second, 0, 2 * time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond, 1750 * time.Millisecond},
		{"a short grace reserves a quarter", time.Second, time.Minute, 1, time.Second, 750 * time.Millisecond, 750 * time.Millisecond, 875 * time.Millisecond},
		{"it is over already", 4 * time.Second, -time.Second, 1, -time.Second, -1500 * time.Millisecond, -time.Second, -time.Second},
	} {
		d := deadlines{grace: tc.grace}
		d.begin(now, now, now.Add(tc.left))
		d.cutOff(now, tc.running)
		flush, closed := d.lastSteps(now)
		for _, c := range []struct {
			what string
			got  time.Time
			want time.Duration
		}{{"end", d.end, tc.end}, {"end of work", d.workEnd(), tc.work}, {"flush", flush, tc.flush}, {"close", closed, tc.closed}} {
			if c.got.Sub(now) != c.want {
				t.Errorf("%s: %s after %v, want %v", tc.name, c.what, c.got.Sub(now), c.want)
			}
		}
		if d.left(now) < 0 {
			t.Errorf("%s: %v left", tc.name, d.left(now))
		}
	}
}
