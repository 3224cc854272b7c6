package autoscale

import (
	"errors"
	"math"
	"time"

	"github.com/longshore-go/longshore/internal/problem"
)

// Adaptive follows the load and finds out where more workers stop helping.
//
// It sizes from busy seconds and what waits, doubles while all workers are busy
// and work waits, and goes back to the largest demand of the last Hold. Every
// growth is an experiment: if it brought less than 70 % of its share of
// throughput it is undone, which is checked once more on the way down. What is
// left is the knee, where a downstream is saturated: the policy stays there and
// probes now and then, a step up or down, whether it has moved.
type Adaptive struct {
	// Hold is how long a demand is remembered before workers leave. Zero: 45 s.
	Hold time.Duration
	// Util is the share of the time that workers are to be busy, 0.1 to 0.85. Zero: 0.75.
	Util float64
	// Drain is the time in which what waits is to be cleared. Zero: 5 s.
	Drain time.Duration
	// Growth is the factor of one step up, 1.1 to 4. Zero: 2.
	Growth float64
	// NoProbe leaves a knee alone once it was found, until a minute without
	// saturation forgets it.
	NoProbe bool
}

// The constants of the policy; docs/explanation/autoscaling.md has the reasons.
const (
	holdDefault   = 45 * time.Second
	utilDefault   = 0.75
	drainDefault  = 5 * time.Second
	growthDefault = 2.0

	growAt     = 0.85 // growing starts above it: apart from Util, so that it does not flap
	saturated  = 0.9
	full       = 0.5
	deadband   = 0.1
	smooth     = 2.0 // seconds
	stallTimes = 5
	carefulBy  = 1.5

	backlogMax   = 30 * time.Second
	blind        = 5 * time.Second
	stallMin     = 2 * time.Second
	careful      = 30 * time.Second
	carefulPace  = 2 * time.Second
	forget       = 60 * time.Second
	mostlyFailed = 0.9
)

// Check refuses what makes no sense, all at once.
func (a Adaptive) Check() error {
	var errs []error
	if a.Hold < 0 || a.Hold > 0 && a.Hold < time.Second {
		errs = append(errs, problem.Range("Hold", a.Hold, "1s or more, or 0 for the default, %v", holdDefault))
	}
	if a.Drain < 0 || a.Drain > 0 && a.Drain < time.Second {
		errs = append(errs, problem.Range("Drain", a.Drain, "1s or more, or 0 for the default, %v", drainDefault))
	}
	if a.Util != 0 && !(a.Util >= 0.1 && a.Util <= growAt) {
		errs = append(errs, problem.Range("Util", a.Util, "from 0.1 to %v, or 0 for the default, %v", growAt, utilDefault))
	}
	if a.Growth != 0 && !(a.Growth >= 1.1 && a.Growth <= 4) {
		errs = append(errs, problem.Range("Growth", a.Growth, "from 1.1 to 4, or 0 for the default, %v", growthDefault))
	}
	return errors.Join(errs...)
}

// New returns the state of one run.
func (a Adaptive) New() Scaler {
	a.Hold = orDefault(a.Hold, holdDefault)
	a.Util = orDefault(a.Util, utilDefault)
	a.Drain = orDefault(a.Drain, drainDefault)
	a.Growth = orDefault(a.Growth, growthDefault)
	return &adaptive{set: a}
}

// adaptive is the state of one run.
type adaptive struct {
	set Adaptive // the user's settings with their defaults

	meter   meter     // what the last seconds were like
	lanes   recently  // how many workers the order lets run at once
	demands recently  // how many workers the load needed lately
	since   time.Time // first sample: the memory is complete Hold after it
	target  int       // as decided last
	grew    time.Time // last step up

	careful time.Time // until then
	proven  int       // so many workers have shown to be worth it
	few     sums      // calls while there were a few workers
	level   level     // the throughput at the current target
	step    *step     // the move that is being judged
	knee    knee      // from where on more workers bring nothing
}

// Next implements [Scaler].
func (a *adaptive) Next(s Sample) Decision {
	d := a.next(s)
	if d.Target != s.Workers {
		a.level = newLevel(s, a.latency(), d.Target < s.Workers)
	}
	a.target = d.Target
	d.Knee = a.knee.at
	return d
}

func (a *adaptive) next(s Sample) Decision {
	if s.Paused || s.Dt <= 0 {
		a.forgetLevel(s)
		a.meter.pause()
		return Decision{Target: s.Workers, Limit: LimitPaused}
	}
	if a.since.IsZero() {
		a.since, a.target = s.Now, s.Workers
	}
	if s.Workers != a.target { // somebody else moved it: bounds changed
		a.forgetLevel(s)
	}
	a.meter.measure(s)
	need, size := a.need(s)
	top, limit := ceiling(s)
	growTo, limit := a.useful(s, top, limit)
	a.demands.add(s.Now, min(max(int(math.Ceil(size)), s.Min), growTo), a.set.Hold)
	if a.meter.stalled(s) || a.meter.unhung {
		a.forgetLevel(s)
		a.careful = s.Now.Add(careful) // counts from the first call that ends
	} else {
		a.level.add(s)
		a.noteFew(s)
	}
	a.knee.rest(s.Now, a.meter.hot)

	switch {
	case s.Workers > top:
		a.step = nil
		return Decision{Target: top, Reason: FewerMay, Limit: limit}
	case a.meter.stalled(s), a.meter.unhung:
		a.proven = 0
		return Decision{Target: s.Workers, Limit: LimitStalled}
	}
	if a.step != nil {
		if d, open := a.judge(s); open {
			return d
		}
	}
	if need > float64(s.Workers) {
		return a.wanted(s, growTo, limit, size)
	}
	return a.shrink(s)
}

// useful lowers a ceiling to what lanes and a rate let run. They only limit growth;
// fewer workers follow through what is remembered as demand.
func (a *adaptive) useful(s Sample, top int, limit string) (int, string) {
	top, limit = a.lanes.cap(s, top, limit)
	if lat := a.meter.latency(); s.Rate > 0 && lat > 0 {
		if n := max(int(math.Ceil(s.Rate*lat/a.set.Util)), s.Min, 1); n < top {
			return n, LimitRate
		}
	}
	return top, limit
}

// forgetLevel drops what was measured: the world is another one.
func (a *adaptive) forgetLevel(s Sample) {
	a.step = nil
	a.level = newLevel(s, a.latency(), false)
}

// latency is how long a call of the present level takes to end: the average, which
// lags, or what was seen at this level.
func (a *adaptive) latency() float64 {
	lat := a.meter.latency()
	if a.level.sum.execs >= leastRef {
		lat = max(lat, a.level.sum.busy/a.level.sum.execs)
	}
	return lat
}

// wanted is a sample in which more workers would be used.
func (a *adaptive) wanted(s Sample, top int, limit string, size float64) Decision {
	if a.knee.at > 0 && a.knee.at < top {
		top, limit = max(a.knee.at, s.Min), LimitKnee
	}
	if s.Workers < top {
		return a.grow(s, top, size)
	}
	if a.knee.at == 0 && a.proven < s.Workers && s.Workers > s.Min && a.meter.hot { // nobody has looked whether it was worth it
		a.knee.suspect(s.Now, s.Workers)
	}
	if a.knee.at > 0 {
		if d, probing := a.probe(s); probing {
			return d
		}
	}
	return Decision{Target: s.Workers, Limit: limit}
}

// grow takes a step up and opens the experiment that judges it.
func (a *adaptive) grow(s Sample, top int, size float64) Decision {
	n, by := s.Workers, a.set.Growth
	keep := Decision{Target: n, Limit: LimitPace}
	proven := a.level.tells(s.Now, a.meter.latency())
	switch {
	case a.meter.failing():
		keep.Limit = LimitFailing
		return keep
	case a.meter.blind(): // hour-long calls still reach Max, but slowly
		if s.Queued == 0 && s.Backlog <= 0 || n >= rushBlind && !passed(s.Now, a.grew, blind) {
			return keep
		}
	case s.Now.Before(a.careful):
		if by = min(by, carefulBy); !passed(s.Now, a.grew, carefulPace-s.Dt/2) {
			return keep
		}
	case proven:
		if n == rushFree && a.slower() {
			by = min(by, carefulBy)
		}
	case !a.mayRush(n):
		keep.Limit = LimitJudging
		return keep
	case n == rushFree:
		if by = max(by, rushBy); a.meter.hot {
			size = max(size, by*float64(n))
		}
	}
	most := max(n+1, int(float64(n)*by))
	if !proven && n < rushFree {
		most = min(most, rushFree)
	}
	target := min(max(int(math.Ceil(size)), n+1), top, most)
	a.grew = s.Now
	if proven || n == rushFree {
		a.open(grow, s)
	}
	d := Decision{Target: target, Reason: Demand}
	if a.meter.hot {
		d.Reason = Saturated
	}
	return d
}

// shrink goes back to the largest demand that is remembered.
func (a *adaptive) shrink(s Sample) Decision {
	keep := Decision{Target: s.Workers}
	m := a.demands.most()
	if s.Now.Sub(a.since) < a.set.Hold || float64(m) >= (1-deadband)*float64(s.Workers) {
		return keep
	}
	return Decision{Target: max(m, s.Workers/2), Reason: Idle}
}
