package throttle

import (
	"math"
	"math/rand/v2"
	"time"
)

// A limit that rises from 0, or by more than rampAbove times, rises in steps, and
// every instance begins at a moment of its own: what was held back must not fall
// upon a dependency that has just recovered.
const (
	rampTime   = 5 * time.Second
	rampSteps  = 10
	rampAbove  = 4
	rampJitter = time.Second
	rampOpen   = 1024 // times the beginning, if the end is unlimited
)

type ramp struct {
	began    time.Time
	from, to Limits
}

// newRamp is nil if the step may be taken at once.
func newRamp(from, to Limits, now time.Time) *ramp {
	if !steep(float64(from.Permits), float64(to.Permits)) && !steep(from.Rate, to.Rate) {
		return nil
	}
	return &ramp{began: now.Add(rand.N(rampJitter)), from: from, to: to}
}

func steep(from, to float64) bool {
	switch {
	case from < 0:
		return false // was open
	case to < 0:
		return true
	case from == 0:
		return to > 1
	}
	return to > rampAbove*from
}

// at is the limits of a moment, and when to look again; zero: the ramp is over.
func (r *ramp) at(now time.Time) (m Limits, next time.Time) {
	if now.Before(r.began) {
		return r.from, r.began
	}
	const step = rampTime / rampSteps
	i := now.Sub(r.began) / step
	if i >= rampSteps {
		return r.to, time.Time{}
	}
	m = r.to
	if steep(float64(r.from.Permits), float64(r.to.Permits)) {
		m.Permits = max(whole(between(float64(r.from.Permits), float64(r.to.Permits), int(i))), 1)
	}
	if steep(r.from.Rate, r.to.Rate) {
		m.Rate = between(r.from.Rate, r.to.Rate, int(i))
	}
	return m, r.began.Add((i + 1) * step)
}

// whole is a number of permits. What no int holds is the largest one: converted, it might
// become the smallest.
func whole(permits float64) int {
	if permits >= math.MaxInt {
		return math.MaxInt
	}
	return int(permits)
}

// between is the i-th of equal factors from one limit to the other.
func between(from, to float64, i int) float64 {
	if to < 0 {
		from = max(from, 1)
		to = from * rampOpen
	}
	from = max(from, to/100)
	return from * math.Pow(to/from, float64(i+1)/rampSteps)
}
