package throttle

import (
	"math"
	"testing"
	"time"
)

// F-N29: a limit that rises to the end of the numbers falls at no step.
func TestARampToTheLargestNumberOnlyRises(t *testing.T) {
	began := time.Now()
	for _, c := range []struct{ from, to Limits }{
		{Limits{Permits: 5, Rate: unlimited}, Limits{Permits: math.MaxInt, Rate: unlimited}},
		{Limits{Permits: 0, Rate: unlimited}, Limits{Permits: math.MaxInt, Rate: unlimited}},
		{Limits{Permits: 5, Rate: 5}, Limits{Permits: math.MaxInt, Rate: maxRate}},
		{Limits{Permits: 0, Rate: 0}, Limits{Permits: unlimited, Rate: unlimited}},
		{Limits{Permits: 0, Rate: 0}, Limits{Permits: 20, Rate: 200}},
	} {
		r := newRamp(c.from, c.to, began)
		if r == nil {
			t.Fatalf("%+v: no ramp", c)
		}
		last := c.from
		for i := range rampSteps {
			m, _ := r.at(r.began.Add(time.Duration(i) * rampTime / rampSteps))
			if m.Permits < last.Permits || m.Rate >= 0 && m.Rate < last.Rate {
				t.Errorf("%+v: step %d is %+v after %+v", c, i, m, last)
			}
			last = m
		}
	}
}
