package backoff

import (
	"math"
	"time"
)

// Policy is a checked backoff: all fields are set.
type Policy struct {
	Initial    time.Duration // delay after the first attempt
	Max        time.Duration // cap, jitter included
	Multiplier float64       // ≥ 1
	Jitter     float64       // share in [0, 1]: ± Jitter × delay
}

// Delay returns the delay after the n-th attempt that failed, n counted from 1.
// rnd in [0, 1) places it within the jitter.
//
// The arithmetic is in float64 and clamped once at the end, because shifting or
// multiplying durations overflows from about the 37th attempt on.
func (p Policy) Delay(n int, rnd float64) time.Duration {
	limit := float64(max(p.Max, 1))
	d := float64(max(p.Initial, 1))
	if n > 1 && p.Multiplier > 1 {
		d *= math.Pow(p.Multiplier, float64(n-1))
	}
	if !(d < limit) { // also +Inf and NaN
		d = limit
	}
	if p.Jitter > 0 {
		d *= 1 + min(p.Jitter, 1)*(2*rnd-1)
	}
	switch {
	case !(d < limit):
		return max(p.Max, 1)
	case d < 1:
		return 1
	}
	return time.Duration(d)
}
