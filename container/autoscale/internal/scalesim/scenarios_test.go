package scalesim

import "math"

// never is what a figure is if what it waits for did not happen.
var never = math.Inf(1)

func constant(r float64) func(float64) float64 { return func(float64) float64 { return r } }

// shared is a downstream of so much capacity that its calls share.
func shared(capacity float64) func(float64, int) float64 {
	return func(_ float64, n int) float64 { return min(1, capacity/float64(max(n, 1))) }
}

// thrash gets less done the more calls beyond its capacity.
func thrash(capacity float64) func(float64, int) float64 {
	return func(_ float64, n int) float64 {
		if x := float64(n); x > capacity {
			return capacity / x * math.Sqrt(capacity/x)
		}
		return 1
	}
}

func slots(n int) func(float64) int { return func(float64) int { return n } }

func between(from, to float64, inside, outside float64) func(float64, int) float64 {
	return func(t float64, _ int) float64 {
		if t >= from && t < to {
			return inside
		}
		return outside
	}
}

// figure is a number of a run with the bar that it is held to.
type figure struct {
	name   string
	of     func(*result) float64
	lo, hi float64 // of the median; hi 0: not held to anything
	worst  bool    // the worst seed instead of the median
}

type scenario struct {
	name    string
	load    load
	figures []figure
}

func reach(n int, hi float64) figure {
	return figure{name: "s to " + itoa(n), of: func(r *result) float64 { return r.reaches(n, 0) }, hi: hi}
}

func back(hi float64) figure { return figure{name: "s back to Min", of: (*result).back, hi: hi} }

func reversals(hi float64) figure {
	return figure{name: "reversals in 60 s", of: (*result).reversals, hi: hi, worst: true}
}

func settled(knee, from, to float64) figure {
	return figure{name: "settled / knee", of: func(r *result) float64 { return r.settled(from, to) / knee }, lo: 0.75, hi: 1.25}
}

func peak(knee, hi float64) figure {
	name := "peak / knee"
	if knee == 1 {
		name = "most workers"
	}
	return figure{name: name, of: func(r *result) float64 { return r.peak() / knee }, hi: hi}
}

func wait(q, hi float64) figure {
	name := "p99 wait s"
	if q == 0.5 {
		name = "p50 wait s"
	}
	return figure{name: name, of: func(r *result) float64 { return r.quantile(q) }, hi: hi}
}

func changes() figure {
	return figure{name: "changes per h", of: func(r *result) float64 { return float64(len(r.changes)) / r.load.length * 3600 }}
}

func unknown(l load) load {
	l.backlog = -1
	return l
}

// scenarios are those of the research; where they differ from it in a number that
// it does not give, it is a choice made here.
func scenarios() []scenario {
	burst := load{min: 1, max: 30, length: 100, burst: 50_000, work: 0.010}
	burst200 := load{min: 1, max: 200, length: 100, burst: 50_000, work: 0.010}
	slow := load{min: 1, max: 30, length: 200, burst: 2000, work: 1}
	sqs := load{min: 1, max: 20, length: 120, burst: 20_000, work: 0.020, pull: true, trip: 0.012}
	trickle := burst
	trickle.rate, trickle.top, trickle.length = constant(1), 1, 150
	trickle.ended, trickle.even = 18, true
	cap8 := func(work float64, length float64) load {
		return load{min: 1, max: 200, length: length, work: work, slots: slots(8), rate: constant(16 / work), top: 16 / work}
	}
	return []scenario{
		{"burst 10 ms, Max 30", unknown(burst), []figure{reach(27, 5), reach(30, 5), back(60)}},
		{"burst 10 ms, Max 200", unknown(burst200), []figure{reach(180, 5), back(60), wait(.99, 0)}},
		{"burst 1 s, Max 30", unknown(slow), []figure{reach(27, 5), wait(.99, 0), back(60)}},
		{"burst 1 s, backlog known", slow, []figure{reach(27, 5), back(60)}},
		{"burst 10 ms, backlog known", burst, []figure{reach(27, 5), back(60)}},
		{"burst 10 ms, stale backlog", stale(burst), []figure{reach(27, 5), back(60)}},
		{"SQS burst, Max 20", unknown(sqs), []figure{reach(18, 5), wait(.99, 0), back(60)}},
		{"SQS burst 0.1 s after a reading", after(sqs, 30.1), []figure{{name: "s to 18", of: func(r *result) float64 { return r.reaches(18, 30.1) }, hi: 5}}},
		{"SQS burst, backlog known", sqs, []figure{reach(18, 5), wait(.99, 0), back(60)}},
		{"burst, then 1 msg/s", unknown(trickle), []figure{back(60)}},
		{"steady 18 of 30", unknown(load{min: 1, max: 30, length: 240, warm: 60, work: 0.050, rate: constant(18 / .0523), top: 18 / .0523}),
			[]figure{wait(.99, .5), reversals(1), changes()}},
		{"sine 2 to 26", unknown(load{min: 1, max: 30, length: 620, work: 0.050, top: 26 / .0523,
			rate: func(t float64) float64 { return (14 - 12*math.Cos(t*2*math.Pi/600)) / .0523 }}),
			[]figure{wait(.99, 1), reversals(3), changes()}},
		{"5 s on, 5 s off", unknown(onOff(5)), []figure{wait(.99, 2), reversals(1), changes()}},
		{"30 s on, 30 s off", unknown(onOff(30)), []figure{wait(.99, 2), reversals(1), changes()}},
		{"hard cap 8, 20 ms", unknown(cap8(.020, 240)), []figure{settled(8, 60, 240), peak(8, 0)}},
		{"hard cap 8, 200 ms", unknown(cap8(.200, 240)), []figure{settled(8, 60, 240), peak(8, 0)}},
		{"hard cap 8, 5 s", unknown(load{min: 1, max: 100, length: 900, work: 5, slots: slots(8), rate: constant(3), top: 3}),
			[]figure{settled(8, 300, 900), peak(8, 2.5)}},
		{"hard cap 8, 1 s", unknown(load{min: 1, max: 100, length: 600, work: 1, slots: slots(8), rate: constant(16), top: 16}),
			[]figure{settled(8, 120, 600), peak(8, 0)}},
		{"hard cap 8, 1 s, backlog known", load{min: 1, max: 100, length: 600, work: 1, slots: slots(8), rate: constant(16), top: 16},
			[]figure{settled(8, 120, 600), peak(8, 0)}},
		{"hard cap 2, 1 s", unknown(load{min: 1, max: 100, length: 600, work: 1, slots: slots(2), rate: constant(4), top: 4}),
			[]figure{settled(2, 300, 600), peak(2, 6.5)}},
		{"hard cap 50, 40 ms", unknown(load{min: 1, max: 200, length: 120, work: .040, slots: slots(50), rate: constant(2500), top: 2500}),
			[]figure{settled(50, 60, 120), peak(50, 2)}},
		{"2 cores, 20 ms", unknown(load{min: 1, max: 100, length: 240, work: .020, speed: shared(2), rate: constant(200), top: 200}),
			[]figure{settled(2, 60, 240), peak(2, 0)}},
		{"thrash past 8", unknown(load{min: 1, max: 200, length: 240, work: .020, speed: thrash(8), rate: constant(700), top: 700}),
			[]figure{settled(8, 60, 240), peak(8, 0), wait(.5, 0)}},
		{"cap drops 24 to 8", unknown(drops()), []figure{settled(8, 180, 300)}},
		{"cap rises 8 to 24", unknown(rises()), []figure{settled(24, 280, 400),
			{name: "s to 20 after the rise", of: func(r *result) float64 { return r.reaches(20, 120) }, hi: 125}}},
		{"hangs 30 s, need 6", unknown(hang(0)), []figure{peak(1, 80)}},
		{"hangs 30 s, cap 8", unknown(hang(8)), []figure{peak(1, 40), settled(8, 200, 300)}},
		{"5 × slower for 60 s", unknown(load{min: 1, max: 100, length: 300, work: .050, rate: constant(150), top: 150,
			speed: between(120, 180, .2, 1), breaks: []float64{120, 180}}), []figure{wait(.99, 5)}},
		{"heavy tail, steady 12", unknown(load{min: 4, max: 60, length: 240, warm: 60, work: .010, spread: 1.68, rate: constant(12 / .041), top: 12 / .041}),
			[]figure{wait(.99, 5), reversals(4)}},
		{"heavy tail, burst", unknown(load{min: 1, max: 60, length: 150, burst: 30_000, work: .010, spread: 1.68}),
			[]figure{reach(54, 0)}},
		{"window of 20", unknown(limited(load{window: 20})), []figure{peak(1, 20)}},
		{"4 partitions", unknown(limited(load{keys: 4})), []figure{peak(1, 4)}},
		{"3 hot keys", unknown(limited(load{keys: 3})), []figure{peak(1, 3)}},
		{"permits 5, 20, 3, none", unknown(permits()), []figure{
			{name: "s to 18 after 5 → 20", of: func(r *result) float64 { return r.reaches(18, 60) }, hi: 2},
			{name: "most at 3 permits", of: func(r *result) float64 { return most(r, 120.6, 179) }, hi: 3}}},
		{"batches of 1, then 10", unknown(load{min: 1, max: 30, length: 240, work: .020, rate: constant(300), top: 300, breaks: []float64{120},
			batch: func(t float64) int {
				if t < 120 {
					return 1
				}
				return 10
			}}), []figure{wait(.99, 5), peak(1, 30)}},
	}
}

// after lets the burst come later.
func after(l load, t float64) load {
	l.burstAt = t
	return l
}

func stale(l load) load {
	l.backlog = 60
	return l
}

func onOff(period float64) load {
	return load{min: 1, max: 30, length: 300, warm: 60, work: .050, top: 18 / .0523,
		rate: func(t float64) float64 {
			if math.Mod(t, 2*period) < period {
				return 18 / .0523
			}
			return 0
		}}
}

func drops() load {
	return load{min: 1, max: 100, length: 300, work: .040, rate: constant(1000), top: 1000, breaks: []float64{120},
		slots: func(t float64) int {
			if t < 120 {
				return 24
			}
			return 8
		}}
}

func rises() load {
	return load{min: 1, max: 100, length: 400, work: .040, rate: constant(1000), top: 1000, breaks: []float64{120},
		slots: func(t float64) int {
			if t < 120 {
				return 8
			}
			return 24
		}}
}

func hang(cap int) load {
	l := load{min: 1, max: 200, length: 300, work: .050, rate: constant(6 / .0523), top: 6 / .0523,
		speed: between(120, 150, 0, 1), breaks: []float64{120, 150}}
	if cap > 0 {
		l.slots = slots(cap)
	}
	return l
}

func limited(l load) load {
	l.min, l.max, l.length, l.work, l.rate, l.top = 1, 30, 40, .020, constant(3000), 3000
	return l
}

func permits() load {
	return load{min: 1, max: 30, length: 240, work: .020, rate: constant(18 / .0209), top: 18 / .0209, breaks: []float64{60, 120, 180},
		permits: func(t float64) int {
			switch {
			case t < 60:
				return 5
			case t < 120:
				return 20
			case t < 180:
				return 3
			}
			return -1
		}}
}

func most(r *result, from, to float64) float64 {
	n := 0
	for _, p := range r.points {
		if p.T > from && p.T <= to {
			n = max(n, p.Workers)
		}
	}
	return float64(n)
}
