package scalesim

import (
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
)

// Spring's rule and Consecutive in the scenarios where they differ from Adaptive,
// and from each other: the numbers of the documentation's comparison.
func TestSpringsRulesBesideThem(t *testing.T) {
	slow := unknown(load{min: 1, max: 30, length: 330, burst: 80_000, work: .050})
	trickle := unknown(load{min: 1, max: 10, length: 900, burst: 50_000, work: .010, rate: constant(1), top: 1, even: true, ended: 100})
	cap8 := unknown(load{min: 1, max: 200, length: 240, work: .020, slots: slots(8), rate: constant(800), top: 800})
	to27 := func(r *result) float64 { return r.reaches(27, 0) }
	ratio := func(r *result) float64 { return r.settled(220, 240) / 8 }
	for _, row := range []struct {
		name   string
		load   load
		policy autoscale.Policy
		of     func(*result) float64
		lo, hi float64
	}{
		{"burst", slow, spring{}, to27, 200, 320},
		{"burst", slow, autoscale.Consecutive{}, to27, 200, 320},
		{"burst", slow, autoscale.Adaptive{}, to27, 0, 5},
		{"trickle", trickle, spring{}, (*result).back, never, never},
		{"trickle", trickle, autoscale.Consecutive{}, (*result).back, 500, 620},
		{"trickle", trickle, autoscale.Adaptive{}, (*result).back, 0, 60},
		{"cap 8", cap8, spring{}, ratio, 2, 4},
		{"cap 8", cap8, autoscale.Consecutive{}, ratio, 2, 4},
		{"cap 8", cap8, autoscale.Adaptive{}, ratio, .75, 1.25},
	} {
		r := newWorld(row.load, row.policy, 1).run()
		v := row.of(r)
		t.Logf("%-10s %-24T %s", row.name, row.policy, text(v))
		if v < row.lo || v > row.hi {
			t.Errorf("%s with %T: %s, want %v to %v", row.name, row.policy, text(v), row.lo, row.hi)
		}
	}
}
