package scalesim

import (
	"math"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// tick samples as the container does and follows the decision.
func (w *world) tick() {
	w.noteFull()
	s := autoscale.Sample{Now: time.Unix(0, 0).Add(seconds(w.now)), Dt: seconds(tick), Min: w.min, Max: w.max, Workers: w.target,
		Busy: int(w.busy), BusySec: w.acc, Completed: w.completed, Execs: w.execs, Failed: w.failed, SumLog: w.log, SumLog2: w.log2,
		Queued: w.ready.len(), FullFrac: float64(w.hits) / float64(w.seen), BacklogAge: -1, Permits: w.permit(), Lanes: -1,
		Window: w.window, ActiveTripped: w.activeTripped}
	if w.window == 0 {
		s.Window = -1
	}
	if w.backlog >= 0 {
		if w.now-w.readAt >= readEvery-1e-9 {
			w.read, w.readAt = w.queue.len()/max(len(w.fleet), 1), w.now // its share
		}
		s.Backlog, s.BacklogAge = int64(w.read), seconds(w.now-w.readAt+w.backlog)
	}
	if w.keys > 0 {
		s.Lanes = len(w.running)
	}
	s.Paused = w.paused != nil && w.paused(w.now)
	if w.cycles != nil {
		s.IdleTripped = w.idleTripped()
	}
	w.acc, w.completed, w.execs, w.failed, w.log, w.log2, w.hits, w.seen, w.activeTripped = 0, 0, 0, 0, 0, 0, 0, 0, 0
	d := w.policy.Next(s)
	n := min(max(d.Target, w.min), w.max)
	w.result.tick(w, s, n, d)
	if n != w.target {
		w.setTarget(n)
	}
}

// point is one tick of a run.
type point struct {
	T       float64
	Workers int
	Busy    float64 // smoothed by the tick
	Waiting int     // at the broker and here
	Knee    int
	Reason  string
}

// result is what came of a run.
type result struct {
	load     load
	points   []point
	changes  []point // Workers is the new target, Busy the old one
	lastWait float64 // last time that something waited at the broker
	hist     [1400]int
	n        int
	total    int
	workSec  float64
}

func newResult(l load) *result { return &result{load: l} }

const (
	histMin = 1e-4
	histBy  = 1.01
)

func (r *result) waited(s float64) {
	i := 0
	if s > histMin {
		i = min(int(math.Log(s/histMin)/math.Log(histBy)), len(r.hist)-1)
	}
	r.hist[i]++
	r.n++
}

func (r *result) done(n int) { r.total += n }

func (r *result) tick(w *world, s autoscale.Sample, target int, d autoscale.Decision) {
	p := point{w.now, target, s.BusySec / tick, w.queue.len() + w.ready.len() + w.behind, d.Knee, d.Reason}
	if p.Waiting > 0 && w.queue.len() > 0 {
		r.lastWait = w.now
	}
	r.points = append(r.points, p)
	r.workSec += float64(s.Workers) * tick
	if target != s.Workers {
		p.Busy = float64(s.Workers)
		r.changes = append(r.changes, p)
	}
}

func (r *result) end() {}

// quantile of the waiting times.
func (r *result) quantile(q float64) float64 {
	want, sum := int(q*float64(r.n)), 0
	for i, n := range r.hist {
		if sum += n; sum > want {
			if i == 0 {
				return 0
			}
			return histMin * math.Pow(histBy, float64(i)+0.5)
		}
	}
	return math.Inf(1)
}

// reaches is when there are n workers for the first time after t.
func (r *result) reaches(n int, after float64) float64 {
	for _, p := range r.points {
		if p.T > after && p.Workers >= n {
			return p.T - after
		}
	}
	return math.Inf(1)
}

// back is how long after the end of the load the target was at Min for good.
func (r *result) back() float64 {
	end := r.load.ended
	if end == 0 {
		end = r.lastWait
	}
	at := math.Inf(1)
	for _, p := range r.points {
		switch {
		case p.Workers > r.load.min:
			at = math.Inf(1)
		case math.IsInf(at, 1):
			at = p.T
		}
	}
	return max(at-end, 0)
}

// reversals is the most changes of direction in any 60 s.
func (r *result) reversals() float64 {
	var flips []float64
	for i := 1; i < len(r.changes); i++ {
		if r.up(i) != r.up(i-1) {
			flips = append(flips, r.changes[i].T)
		}
	}
	most, from := 0, 0
	for i, t := range flips {
		for t-flips[from] > 60 {
			from++
		}
		most = max(most, i-from+1)
	}
	return float64(most)
}

func (r *result) up(i int) bool { return float64(r.changes[i].Workers) > r.changes[i].Busy }

func (r *result) peak() float64 {
	most := 0
	for _, p := range r.points {
		most = max(most, p.Workers)
	}
	return float64(most)
}

// settled is the mean of the workers from a time to another.
func (r *result) settled(from, to float64) float64 {
	sum, n := 0.0, 0
	for _, p := range r.points {
		if p.T > from && p.T <= to {
			sum += float64(p.Workers)
			n++
		}
	}
	return sum / float64(n)
}
