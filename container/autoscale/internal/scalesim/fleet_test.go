package scalesim

import (
	"math"
	"slices"
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
)

// together runs several instances of a service on one queue and one downstream, which
// lets calls in by their age, whoever they belong to. The first one brings the load.
func together(l load, p autoscale.Policy, n int, seed uint64) []*result {
	fleet := make([]*world, n)
	for i := range fleet {
		own := l
		if i > 0 {
			own.rate, own.burst = nil, 0
		}
		fleet[i] = newWorld(own, p, seed+uint64(1000*i))
		fleet[i].fleet, fleet[i].queue = fleet, fleet[0].queue
	}
	for i, w := range fleet {
		if w.burst > 0 {
			w.events.push(event{w.burstAt, evBurst, 0})
		}
		w.setTarget(w.min)
		// Instances do not start in the same moment.
		w.events.push(event{tick * (1 + float64(i)/float64(n)), evTick, 0})
		if w.rate != nil {
			w.arriveAfter(0)
		}
		for _, b := range w.breaks {
			w.events.push(event{b, evBreak, 0})
		}
	}
	for {
		at, next := math.Inf(1), fleet[0]
		for _, w := range fleet {
			if t := min(w.events.min().t, w.nextEnd()); t < at {
				at, next = t, w
			}
		}
		if at > l.length {
			break
		}
		for _, w := range fleet {
			w.advance(at)
		}
		if next.nextEnd() <= next.events.min().t {
			next.end()
		} else {
			e := next.events.min()
			next.events.pop()
			next.on(e)
		}
	}
	rs := make([]*result, n)
	for i, w := range fleet {
		rs[i] = w.result
	}
	return rs
}

// deal serves the instances in turn, as a broker that pushes does.
func (w *world) deal() {
	first := w.fleet[0]
	for w.queue.len() > 0 {
		served := false
		for range w.fleet {
			o := w.fleet[first.turn]
			first.turn = (first.turn + 1) % len(w.fleet)
			if served = o.room() > 0; served {
				o.accept(w.queue.pop())
				o.startAll()
				break
			}
		}
		if !served {
			break
		}
	}
	for _, o := range w.fleet {
		o.startAll()
	}
}

// enterTogether lets the calls in that have waited the longest.
func (w *world) enterTogether() {
	for {
		inside, oldest := 0, (*world)(nil)
		for _, o := range w.fleet {
			inside += len(o.inside)
			if len(o.outside) > 0 && (oldest == nil || o.calls[o.outside[0]].began < oldest.calls[oldest.outside[0]].began) {
				oldest = o
			}
		}
		if oldest == nil || w.slots != nil && inside >= w.slots(w.now) {
			return
		}
		at := oldest.outside[0]
		oldest.outside = oldest.outside[1:]
		oldest.inside.push(vend{oldest.v + oldest.calls[at].work, at})
	}
}

// fleetFigures are medians of several seeds, the reversals the worst.
type fleetFigures struct{ settled, peak, reach, back, reversals, p99 float64 }

func fleetRun(l load, n, seeds, each int, from, to float64) fleetFigures {
	var all [6][]float64
	for seed := range seeds {
		rs := together(l, autoscale.Adaptive{}, n, uint64(seed+1))
		var f fleetFigures
		for _, r := range rs {
			f.settled += r.settled(from, to)
			f.reach = max(f.reach, r.reaches(each, 0))
			f.back = max(f.back, r.back())
			f.reversals = max(f.reversals, r.reversals())
			f.p99 = max(f.p99, r.quantile(.99))
		}
		for i := range rs[0].points {
			sum := 0
			for _, r := range rs {
				if i < len(r.points) {
					sum += r.points[i].Workers
				}
			}
			f.peak = max(f.peak, float64(sum))
		}
		for i, v := range []float64{f.settled, f.peak, f.reach, f.back, f.reversals, f.p99} {
			all[i] = append(all[i], v)
		}
	}
	for i := range all {
		slices.Sort(all[i])
	}
	mid := func(i int) float64 { return all[i][len(all[i])/2] }
	return fleetFigures{mid(0), mid(1), mid(2), mid(3), all[4][len(all[4])-1], mid(5)}
}

// Three instances, each of which takes the others for the world: a burst is worked off
// by all of them at once, and a steady load leaves them calm.
func TestSeveralInstances(t *testing.T) {
	byName := map[string]load{}
	for _, sc := range scenarios() {
		byName[sc.name] = sc.load
	}
	f := fleetRun(byName["burst 10 ms, Max 30"], 3, seeds(), 27, 0, 1)
	t.Logf("burst: s to 27 each %s, back %s, reversals %.0f", text(f.reach), text(f.back), f.reversals)
	if f.reach > 5 || f.back > 60 || f.reversals > 1 {
		t.Errorf("burst: %+v", f)
	}
	f = fleetRun(byName["steady 18 of 30"], 3, seeds(), 1, 60, 240)
	t.Logf("steady: settled %.1f in all, p99 wait %s, reversals %.0f", f.settled, text(f.p99), f.reversals)
	if f.settled < 18 || f.settled > 30 || f.p99 > .5 || f.reversals > 1 {
		t.Errorf("steady: %+v", f)
	}
}

// What several instances make of one saturated downstream: growing pays for each of
// them at the cost of the others, so none finds the knee. That is what a total for the
// fleet is for; the figures stand in docs/explanation/autoscaling.md. With make
// autoscale.
func TestSeveralInstancesAtAKnee(t *testing.T) {
	if !writes() {
		return
	}
	for _, sc := range scenarios() {
		if sc.name != "hard cap 8, 20 ms" && sc.name != "hard cap 8, 200 ms" {
			continue
		}
		for n := 1; n <= 3; n++ {
			f := fleetRun(sc.load, n, seeds(), 1, 60, 240)
			t.Logf("%-20s %d instances: settled / knee %.2f, most %.0f, reversals %.0f", sc.name, n, f.settled/8, f.peak, f.reversals)
		}
		total := sc.load // three permits each, as of a total of 9
		total.permits = func(float64) int { return 3 }
		if f := fleetRun(total, 3, seeds(), 1, 60, 240); f.settled > 9 {
			t.Errorf("%s, a total of 9: settled at %.1f", sc.name, f.settled)
		}
	}
}
