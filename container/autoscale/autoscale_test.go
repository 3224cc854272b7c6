package autoscale_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// world feeds samples to a policy: arrivals and handler time decide the rest.
type world struct {
	t       *testing.T
	policy  autoscale.Scaler
	now     time.Time
	target  int
	min     int
	max     int
	permits int
	waiting float64
	changes int
}

func newWorld(t *testing.T, p autoscale.Policy, lo, hi int) *world {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, policy: p.New(), now: time.Unix(0, 0), target: lo, min: lo, max: hi, permits: -1}
}

// tick lets half a second pass with this many arrivals of this length.
func (w *world) tick(arrivals float64, length time.Duration) autoscale.Decision {
	const dt = 0.5
	w.now = w.now.Add(500 * time.Millisecond)
	w.waiting += arrivals
	slots := w.target
	if w.permits >= 0 {
		slots = min(slots, w.permits)
	}
	done := min(w.waiting, float64(slots)*dt/length.Seconds())
	w.waiting -= done
	look := float64(max(w.target, 8))
	s := autoscale.Sample{Now: w.now, Dt: 500 * time.Millisecond, Min: w.min, Max: w.max, Workers: w.target,
		BusySec: done * length.Seconds(), Completed: int(done + 0.5), Execs: int(done + 0.5),
		Queued: int(min(w.waiting, look)), BacklogAge: -1, Permits: w.permits, Lanes: -1}
	if w.waiting >= look/2 {
		s.FullFrac, s.Busy = 1, w.target
	}
	d := w.policy.Next(s)
	if d.Target != w.target {
		w.changes++
		if d.Reason == "" {
			w.t.Errorf("%d → %d without a reason", w.target, d.Target)
		}
	}
	if d.Target < w.min || d.Target > w.max {
		w.t.Fatalf("target %d outside %d to %d", d.Target, w.min, w.max)
	}
	w.target = d.Target
	return d
}

func TestAdaptiveReachesMaxInABurstAndComesBack(t *testing.T) {
	w := newWorld(t, autoscale.Adaptive{}, 1, 30)
	w.waiting = 50_000
	for i := 0; w.target < 27; i++ {
		if w.tick(0, 10*time.Millisecond); i > 10 {
			t.Fatalf("%d workers after 5 s", w.target)
		}
	}
	for w.waiting > 0 {
		w.tick(0, 10*time.Millisecond)
	}
	ticks := 0
	for ; w.target > 1 && ticks < 200; ticks++ {
		w.tick(0.5, 10*time.Millisecond)
	}
	if secs := ticks / 2; secs < 40 || secs > 60 {
		t.Errorf("back at Min after %d s", secs)
	}
}

func TestAdaptiveIsCalmUnderSteadyLoad(t *testing.T) {
	w := newWorld(t, autoscale.Adaptive{}, 1, 30)
	for range 120 {
		w.tick(9, time.Second) // 18 of 30
	}
	w.changes = 0
	for range 1200 {
		w.tick(9, time.Second)
	}
	if w.changes > 2 || w.target < 18 || w.target > 26 {
		t.Errorf("%d changes in 10 min, %d workers for 18", w.changes, w.target)
	}
}

// F-E01: a hang is not demand.
func TestAdaptiveDoesNotGrowWhileNothingEnds(t *testing.T) {
	w := newWorld(t, autoscale.Adaptive{}, 1, 30)
	for range 20 {
		w.tick(1, 100*time.Millisecond)
	}
	reached := 0 // it may double until the stall is certain, after 2 s
	for i := range 120 {
		w.now = w.now.Add(500 * time.Millisecond)
		d := w.policy.Next(autoscale.Sample{Now: w.now, Dt: 500 * time.Millisecond, Min: 1, Max: 30, Workers: w.target,
			Busy: w.target, BusySec: float64(w.target) * 0.5, FullFrac: 1, Queued: 8, BacklogAge: -1, Permits: -1, Lanes: -1})
		w.target = d.Target
		if i == 5 {
			reached = w.target
		}
	}
	if w.target != reached || reached > 16 {
		t.Errorf("%d workers when the stall was certain, %d a minute later", reached, w.target)
	}
}

func TestPermitsAreACeiling(t *testing.T) {
	w := newWorld(t, autoscale.Adaptive{}, 1, 30)
	w.permits, w.waiting = 5, 50_000
	for range 100 {
		w.tick(0, 10*time.Millisecond)
	}
	if w.target != 5 {
		t.Errorf("%d workers for 5 permits", w.target)
	}
}

// F-E02: more workers than lanes find nothing to do.
func TestLanesLimitGrowth(t *testing.T) {
	p := autoscale.Adaptive{}.New()
	now, target := time.Unix(0, 0), 1
	for range 40 {
		now = now.Add(500 * time.Millisecond)
		target = p.Next(autoscale.Sample{Now: now, Dt: 500 * time.Millisecond, Min: 1, Max: 30, Workers: target, Busy: min(target, 3),
			BusySec: 0.5 * float64(target), Completed: 50, Execs: 50, FullFrac: 1, Queued: 30, BacklogAge: -1, Permits: -1, Lanes: 3}).Target
	}
	if target != 3 {
		t.Errorf("%d workers for 3 lanes", target)
	}
}

func TestPausedKeepsTheTarget(t *testing.T) {
	w := newWorld(t, autoscale.Adaptive{}, 1, 30)
	w.waiting = 50_000
	for range 6 {
		w.tick(0, 10*time.Millisecond)
	}
	for range 400 {
		w.now = w.now.Add(500 * time.Millisecond)
		if d := w.policy.Next(autoscale.Sample{Now: w.now, Dt: 500 * time.Millisecond, Min: 1, Max: 30, Workers: w.target, Paused: true}); d.Target != w.target {
			t.Fatalf("%d → %d while paused", w.target, d.Target)
		}
	}
}

func TestFixedKeepsTheCount(t *testing.T) {
	w := newWorld(t, autoscale.Fixed{}, 3, 30)
	w.waiting = 50_000
	for range 100 {
		w.tick(10, time.Second)
	}
	if w.target != 3 {
		t.Errorf("%d workers", w.target)
	}
}

func TestChecks(t *testing.T) {
	for hold, ok := range map[time.Duration]bool{0: true, time.Second: true, time.Millisecond: false, -1: false} {
		if err := (autoscale.Adaptive{Hold: hold}).Check(); (err == nil) != ok {
			t.Errorf("Hold %v: %v", hold, err)
		}
	}
}
