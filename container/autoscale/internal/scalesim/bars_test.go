package scalesim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
)

func itoa(n int) string { return strconv.Itoa(n) }

// seeds is how many runs a median is of.
func seeds() int {
	if raced || testing.Short() {
		return 1
	}
	return 5
}

// figures runs a scenario and returns each figure's median or worst.
func figures(sc scenario, p autoscale.Policy, n int) []float64 {
	all := make([][]float64, len(sc.figures))
	for seed := range n {
		r := newWorld(sc.load, p, uint64(seed+1)).run()
		for i, f := range sc.figures {
			all[i] = append(all[i], f.of(r))
		}
	}
	out := make([]float64, len(all))
	for i, vs := range all {
		slices.Sort(vs)
		out[i] = vs[len(vs)/2]
		if sc.figures[i].worst {
			out[i] = vs[len(vs)-1]
		}
	}
	return out
}

func text(v float64) string {
	if math.IsInf(v, 1) {
		return "never"
	}
	return fmt.Sprintf("%.3g", v)
}

// The bars of the specification, each a row; -v prints the figures.
func TestBars(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			for i, v := range figures(sc, autoscale.Adaptive{}, seeds()) {
				f := sc.figures[i]
				t.Logf("%-28s %-24s %8s", sc.name, f.name, text(v))
				if f.hi > 0 && (v > f.hi || v < f.lo) {
					t.Errorf("%s: %s is %s, want %v to %v", sc.name, f.name, text(v), f.lo, f.hi)
				}
			}
		})
	}
}

// Seeds that no constant was chosen by, each run by itself and not the median: with
// make autoscale. A few runs in a hundred miss a bar.
func TestSeedsHeldOut(t *testing.T) {
	if !writes() {
		return
	}
	runs, missed := 0, 0
	for _, sc := range scenarios() {
		for seed := uint64(100); seed < 120; seed++ {
			r := newWorld(sc.load, autoscale.Adaptive{}, seed).run()
			runs++
			bad := false
			for _, f := range sc.figures {
				if v := f.of(r); f.hi > 0 && (v > f.hi || v < f.lo) {
					bad = true
					t.Logf("%s, seed %d: %s is %s", sc.name, seed, f.name, text(v))
				}
			}
			if bad {
				missed++
			}
		}
	}
	t.Logf("%d of %d runs missed a bar", missed, runs)
	if missed*100 > 3*runs {
		t.Error("more than 3 in 100")
	}
}
