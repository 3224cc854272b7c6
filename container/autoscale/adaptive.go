package autoscale

import (
	"fmt"
	"math"
	"time"
)

// Adaptive follows the load: it doubles the workers while they are saturated and
// work waits, and goes back to the largest demand of the last Hold. Demand is
// busy seconds per second plus what waits, to be cleared within five seconds.
//
// It does not look for the point from which on more workers bring nothing: give
// Workers.Max with the downstream in mind.
type Adaptive struct {
	// Hold is how long a demand is remembered before workers leave. Zero: 45 s.
	Hold time.Duration
}

// The constants of the policy; docs/explanation has the reasons.
const (
	util      = 0.75 // workers are to be busy this share of the time
	growAt    = 0.85 // growing starts above it: apart from util, so that it does not flap
	saturated = 0.9
	full      = 0.5
	growth    = 2
	deadband  = 0.1
	drain     = 5.0 // seconds in which what waits is to be cleared
	smooth    = 2.0 // seconds
	blind     = 5 * time.Second
	stallMin  = 2 * time.Second
	lanesFor  = 5 * time.Second

	holdDefault = 45 * time.Second
	backlogMax  = 30 * time.Second
)

// Check refuses a negative or tiny Hold.
func (a Adaptive) Check() error {
	if a.Hold < 0 || (a.Hold > 0 && a.Hold < time.Second) {
		return fmt.Errorf("autoscale.Adaptive.Hold is %v: at least 1s, or 0 for %v", a.Hold, holdDefault)
	}
	return nil
}

// New returns the state of one run.
func (a Adaptive) New() Scaler {
	if a.Hold <= 0 {
		a.Hold = holdDefault
	}
	return &adaptive{hold: a.Hold}
}

type adaptive struct {
	hold time.Duration

	busy               float64 // smoothed concurrency
	sec, done          float64 // smoothed, for the latency
	carry              float64 // busy seconds of ticks that finished nothing
	fullSince, running time.Time
	grewBlind          time.Time
	lanes              []demand // the last five seconds
	demands            []demand // the newest of each size, decreasing
	since              time.Time
}

type demand struct {
	at time.Time
	n  int
}

// Next implements [Scaler].
func (a *adaptive) Next(s Sample) Decision {
	keep := Decision{Target: s.Workers}
	dt := s.Dt.Seconds()
	if s.Paused || dt <= 0 {
		a.fullSince, a.running = time.Time{}, time.Time{}
		return keep
	}
	lat := a.measure(s, dt)
	need, size := a.need(s, dt, lat)
	top := ceiling(s)
	growTo := min(top, a.runnable(s))
	a.remember(s.Now, min(max(int(math.Ceil(size)), s.Min), top))

	switch {
	case s.Workers > top:
		return Decision{Target: top, Reason: "ceiling"}
	case a.stalled(s, lat):
		return keep
	case need > float64(s.Workers) && s.Workers < growTo:
		return a.grow(s, growTo, size)
	}
	return a.shrink(s)
}

// measure updates the averages and returns the latency per message in seconds.
func (a *adaptive) measure(s Sample, dt float64) float64 {
	a.busy += (s.BusySec/dt - a.busy) * min(dt/smooth, 1)
	a.carry += s.BusySec
	if s.Completed > 0 {
		w := min(dt/smooth, 1)
		a.sec += (a.carry - a.sec) * w
		a.done += (float64(s.Completed) - a.done) * w
		a.carry = 0
	}
	if s.Completed > 0 || s.Busy == 0 {
		a.running = s.Now
	}
	if a.since.IsZero() {
		a.since, a.running = s.Now, s.Now
	}
	if a.done <= 0 {
		return 0
	}
	return a.sec / a.done
}

// need returns how many workers the load asks for: from which growing starts,
// and how many it would be sized to.
func (a *adaptive) need(s Sample, dt, lat float64) (need, size float64) {
	waiting := float64(s.Queued)
	fresh := s.BacklogAge >= 0 && s.BacklogAge <= backlogMax
	if fresh {
		waiting += float64(max(s.Backlog, 0))
	}
	size = max(a.busy/util, a.busy+waiting*lat/drain)
	need = max(a.busy/growAt, a.busy+waiting*lat/drain)

	if s.BusySec/dt/float64(max(s.Workers, 1)) < saturated || s.FullFrac < full {
		a.fullSince = time.Time{}
		return need, size
	}
	if a.fullSince.IsZero() {
		a.fullSince = s.Now
	}
	// All workers are busy and more waits: how much more is not known, unless the
	// backlog was read after that began.
	if !fresh || s.Now.Add(-s.BacklogAge).Before(a.fullSince) {
		twice := float64(growth * s.Workers)
		need, size = max(need, twice), max(size, twice)
	}
	return need, size
}

// stalled: something runs and nothing ends; a hang is not demand.
func (a *adaptive) stalled(s Sample, lat float64) bool {
	if s.Busy == 0 || a.done == 0 {
		return false
	}
	limit := max(stallMin, time.Duration(5*lat*float64(time.Second)))
	return s.Now.Sub(a.running) > limit
}

func (a *adaptive) grow(s Sample, top int, size float64) Decision {
	if a.done == 0 { // nothing ever finished: hour-long calls still reach Max, but slowly
		if s.Queued == 0 && s.Backlog == 0 || !a.grewBlind.IsZero() && s.Now.Sub(a.grewBlind) < blind {
			return Decision{Target: s.Workers}
		}
		a.grewBlind = s.Now
	}
	step := max(s.Workers+1, growth*s.Workers)
	return Decision{Target: min(max(int(math.Ceil(size)), s.Workers+1), top, step), Reason: "saturated"}
}

func (a *adaptive) shrink(s Sample) Decision {
	if s.Now.Sub(a.since) < a.hold || len(a.demands) == 0 {
		return Decision{Target: s.Workers}
	}
	m := a.demands[0].n
	if float64(m) >= (1-deadband)*float64(s.Workers) {
		return Decision{Target: s.Workers}
	}
	return Decision{Target: max(m, s.Workers/2), Reason: "idle"}
}

// remember keeps the maximum of a sliding window: the first is the largest.
func (a *adaptive) remember(now time.Time, n int) {
	for len(a.demands) > 0 && a.demands[len(a.demands)-1].n <= n {
		a.demands = a.demands[:len(a.demands)-1]
	}
	a.demands = append(a.demands, demand{now, n})
	old := 0
	for now.Sub(a.demands[old].at) > a.hold {
		old++
	}
	a.demands = append(a.demands[:0], a.demands[old:]...)
}

// runnable is the most lanes that had something to run within the last five
// seconds: more workers than that find nothing to do. It only limits growth, so
// that a lull of keys takes no worker away.
func (a *adaptive) runnable(s Sample) int {
	if s.Lanes < 0 {
		a.lanes = a.lanes[:0]
		return s.Max
	}
	a.lanes = append(a.lanes, demand{s.Now, s.Lanes})
	old := 0
	for s.Now.Sub(a.lanes[old].at) > lanesFor {
		old++
	}
	a.lanes = append(a.lanes[:0], a.lanes[old:]...)
	most := 1
	for _, l := range a.lanes {
		most = max(most, l.n)
	}
	return most
}

// ceiling is the most that permits and window leave room for.
func ceiling(s Sample) int {
	top := s.Max
	if s.Permits >= 0 {
		top = min(top, s.Permits)
	}
	if s.Window > 0 {
		top = min(top, s.Window)
	}
	return max(top, s.Min)
}
