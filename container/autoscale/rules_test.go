package autoscale_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// pool is a policy with samples made by hand: a tick of so many calls of this
// length on all workers, and what is to be different.
type pool struct {
	p autoscale.Scaler
	n int
	t time.Duration
	d autoscale.Decision
}

func newPool(a autoscale.Adaptive, n int) *pool { return &pool{p: a.New(), n: n} }

// busy lets a tick pass in which all workers were busy with calls of this length
// and more waited.
func (p *pool) busy(length time.Duration, change ...func(*autoscale.Sample)) *pool {
	p.t += 500 * time.Millisecond
	calls := float64(p.n) * 0.5 / length.Seconds()
	ln := math.Log(length.Seconds())
	p.d = ask(p.p, p.t, p.n, func(s *autoscale.Sample) {
		s.Max, s.Busy, s.BusySec, s.Queued, s.FullFrac = 64, p.n, 0.5*float64(p.n), 8, 1
		s.Completed, s.Execs, s.SumLog, s.SumLog2 = int(calls), int(calls), math.Floor(calls)*ln, math.Floor(calls)*ln*ln
		for _, f := range change {
			f(s)
		}
	})
	p.n = p.d.Target
	return p
}

func TestKneeIsFoundAndConfirmed(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 4)
	p.busy(10 * time.Millisecond)
	if p.n != 8 || p.d.Reason != autoscale.Saturated {
		t.Fatalf("%+v", p.d)
	}
	p.busy(20 * time.Millisecond) // twice the workers, twice the latency: nothing gained
	if p.n != 4 || p.d.Reason != autoscale.KneeFound || p.d.Knee != 4 {
		t.Fatalf("%+v", p.d)
	}
	p.busy(10 * time.Millisecond) // and nothing lost by going back
	p.busy(10 * time.Millisecond)
	if p.n != 4 || p.d.Limit != autoscale.LimitKnee {
		t.Fatalf("%+v", p.d)
	}
	for p.d.Reason != autoscale.ProbeDown && p.t < 5*time.Second { // nobody has looked below 4 yet
		p.busy(10 * time.Millisecond)
	}
	if p.n != 3 {
		t.Fatalf("after %v: %+v", p.t, p.d)
	}
	p.busy(10 * time.Millisecond)
	if p.n != 4 || p.d.Reason != autoscale.ProbeBack {
		t.Fatalf("%+v", p.d)
	}
	for p.d.Reason != autoscale.ProbeUp && p.t < time.Minute {
		p.busy(10 * time.Millisecond)
	}
	if p.n != 5 {
		t.Fatalf("after %v: %+v", p.t, p.d)
	}
	p.busy(12500 * time.Microsecond)
	if p.n != 4 || p.d.Reason != autoscale.ProbeBack {
		t.Errorf("%+v", p.d)
	}
}

func TestKneeThatWasNoneIsLeft(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 4)
	p.busy(10 * time.Millisecond).busy(20 * time.Millisecond) // the calls became heavier at that very moment
	if p.d.Reason != autoscale.KneeFound {
		t.Fatalf("%+v", p.d)
	}
	p.busy(20 * time.Millisecond) // as slow with fewer: going back cost half
	if p.n != 8 || p.d.Reason != autoscale.KneeFalse || p.d.Knee != 0 {
		t.Errorf("%+v", p.d)
	}
}

func TestKneeBetweenTwoLevels(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 8)
	p.busy(10 * time.Millisecond).busy(13333 * time.Microsecond) // 16 do as much as 12
	if p.n != 12 || p.d.Reason != autoscale.KneeFound {
		t.Errorf("%+v", p.d)
	}
}

func TestNoProbe(t *testing.T) {
	p := newPool(autoscale.Adaptive{NoProbe: true}, 4)
	p.busy(10 * time.Millisecond).busy(20 * time.Millisecond)
	for range 300 {
		if p.busy(10 * time.Millisecond); p.n != 4 {
			t.Fatalf("%+v", p.d)
		}
	}
}

// Fast failures look like good latency.
func TestGrowthThatFailsIsUndone(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 4)
	p.busy(10 * time.Millisecond)
	p.busy(10*time.Millisecond, func(s *autoscale.Sample) { s.Failed = s.Execs / 3 })
	if p.n != 4 || p.d.Reason != autoscale.Failing {
		t.Errorf("%+v", p.d)
	}
}

func TestNoGrowthWhileEverythingFails(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 4)
	for range 40 {
		p.busy(10*time.Millisecond, func(s *autoscale.Sample) { s.Failed = s.Execs })
	}
	if p.n != 4 || p.d.Limit != autoscale.LimitFailing {
		t.Errorf("%+v", p.d)
	}
}

func TestLimits(t *testing.T) {
	for limit, f := range map[string]func(*autoscale.Sample){
		autoscale.LimitMax:     func(s *autoscale.Sample) { s.Max = 4 },
		autoscale.LimitPermits: func(s *autoscale.Sample) { s.Permits = 4 },
		autoscale.LimitWindow:  func(s *autoscale.Sample) { s.Window = 4 },
		autoscale.LimitLanes:   func(s *autoscale.Sample) { s.Lanes = 4 },
		autoscale.LimitRate:    func(s *autoscale.Sample) { s.Rate = 300 }, // × 10 ms ÷ 0.75
		autoscale.LimitPaused:  func(s *autoscale.Sample) { s.Paused = true },
	} {
		p := newPool(autoscale.Adaptive{}, 4)
		for range 10 {
			p.busy(10*time.Millisecond, f)
		}
		if p.n != 4 || p.d.Limit != limit {
			t.Errorf("%s: %+v", limit, p.d)
		}
	}
}

func TestFewerPermitsTakeWorkersAwayAtOnce(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 16)
	p.busy(10*time.Millisecond, func(s *autoscale.Sample) { s.Permits = 5 })
	if p.n != 5 || p.d.Reason != autoscale.FewerMay || p.d.Limit != autoscale.LimitPermits {
		t.Errorf("%+v", p.d)
	}
	p.busy(10*time.Millisecond, func(s *autoscale.Sample) { s.Permits, s.Min = 0, 3 }) // never below Min
	if p.n != 3 {
		t.Errorf("%+v", p.d)
	}
}

// A zero that was read before the burst must not deny it; one read after may.
func TestOldBacklogVetoesNothing(t *testing.T) {
	for age, grows := range map[time.Duration]bool{0: false, 10 * time.Second: true, time.Minute: true, -1: true} {
		p := newPool(autoscale.Adaptive{}, 4)
		p.busy(10*time.Millisecond, func(s *autoscale.Sample) { s.Backlog, s.BacklogAge, s.Queued = 0, age, 4 })
		if p.n > 5 != grows {
			t.Errorf("age %v: %+v", age, p.d)
		}
	}
}

// After a hang: carefully.
func TestAfterAHangGrowthIsCareful(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 8)
	p.busy(10 * time.Millisecond)
	hang := func(s *autoscale.Sample) { s.Completed, s.Execs, s.SumLog, s.SumLog2 = 0, 0, 0, 0 }
	for range 20 {
		p.busy(10*time.Millisecond, hang)
	}
	if p.d.Limit != autoscale.LimitStalled {
		t.Fatalf("%+v", p.d)
	}
	before := p.n
	for range 4 {
		p.busy(10 * time.Millisecond)
	}
	if p.n != before*3/2 {
		t.Errorf("%d → %d in 2 s after a hang", before, p.n)
	}
}

// F-E03: one more and one less by turns for ten minutes.
func TestAlternatingDepthIsNoReason(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 8)
	changes := 0
	for i := range 1200 {
		before := p.n
		p.busy(10*time.Millisecond, func(s *autoscale.Sample) {
			s.Busy, s.BusySec, s.FullFrac, s.Queued = 6-i%2, 0.5*float64(6-i%2), 0, i%2
			s.Completed, s.Execs = 300, 300
			s.SumLog, s.SumLog2 = 300*math.Log(.01), 300*math.Log(.01)*math.Log(.01)
		})
		if p.n != before {
			changes++
		}
	}
	if changes > 1 {
		t.Errorf("%d changes", changes)
	}
}

func TestBoundsThatMoveAreFollowed(t *testing.T) {
	p := newPool(autoscale.Adaptive{}, 4)
	p.busy(10 * time.Millisecond)
	p.n = 32 // an operator's Scale
	p.busy(10 * time.Millisecond)
	if p.d.Reason == autoscale.KneeFound || p.n < 32 {
		t.Errorf("%+v: judged a step that was not its own", p.d)
	}
}

func TestAdaptiveSettings(t *testing.T) {
	err := autoscale.Adaptive{Hold: -1, Util: 2, Drain: time.Millisecond, Growth: 1}.Check()
	for _, name := range []string{"Hold", "Util", "Drain", "Growth"} {
		if err == nil || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("%v does not tell of %s", err, name)
		}
	}
	if err := (autoscale.Adaptive{Hold: time.Second, Util: .5, Drain: time.Second, Growth: 4}).Check(); err != nil {
		t.Error(err)
	}
	if (autoscale.Adaptive{Util: math.NaN()}).Check() == nil {
		t.Error("NaN was accepted")
	}
}
