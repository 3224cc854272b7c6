package autoscale

import (
	"math"
	"time"
)

const (
	evidence  = 10  // calls from which a level tells something
	convict   = 30  // calls on both sides to call a growth useless
	alike     = 0.2 // logarithms of latencies this close are of one world
	keptTicks = 240
)

// sums is what happened in a stretch of time with one number of workers.
type sums struct {
	dt, busy                 float64 // seconds: of time, and of work
	completed, execs, failed float64 // deliveries, calls, and failed calls
	log, log2                float64 // of the calls' times, for their spread
}

func sumsOf(s Sample) sums {
	return sums{s.Dt.Seconds(), s.BusySec, float64(s.Completed), float64(s.Execs), float64(s.Failed), s.SumLog, s.SumLog2}
}

func (s *sums) add(o sums) {
	s.dt += o.dt
	s.busy += o.busy
	s.completed += o.completed
	s.execs += o.execs
	s.failed += o.failed
	s.log += o.log
	s.log2 += o.log2
}

// mean of the logarithms of the latencies. The geometric mean is what it is for:
// one call of fifty times the median would drown an arithmetic one.
func (s sums) mean() float64 { return s.log / s.execs }

func (s sums) variance() float64 {
	if s.execs == 0 {
		return 0
	}
	return max(s.log2/s.execs-s.mean()*s.mean(), 0)
}

// perMessage is mean with the size of batches taken out.
func (s sums) perMessage() float64 {
	return s.mean() - math.Log(max(s.completed, 1)/s.execs)
}

// little is the latency by Little's law: also right while it builds up.
func (s sums) little() float64 { return s.busy / max(s.completed, 1) }

// fills says whether n workers were busy all the time.
func (s sums) fills(n int) bool { return s.busy >= 0.85*s.dt*float64(n) }

// countError is the squared relative error of the count of what ended: calls of
// different length, and calls that began together and end together.
func (s sums) countError(spread float64) float64 {
	clump := 0.2 * s.busy / s.dt / s.execs
	return math.Expm1(min(spread, 3))/s.execs + clump*clump
}

func (s sums) failure() float64 { return s.failed / max(s.execs, 1) }

// level is what was seen since the target was moved last.
type level struct {
	from  time.Time // counted from here: before, calls of the level before still run
	sum   sums      // since the level began
	ticks []sums    // the newest last
}

// newLevel begins to measure when the calls of the old level have ended. After a
// shrink that takes longer, since surplus ones still run.
func newLevel(s Sample, lat float64, shrunk bool) level {
	if shrunk {
		lat *= 1.5
	}
	settle := seconds(lat)
	if settle < s.Dt/4 {
		settle = 0
	}
	return level{from: s.Now.Add(settle)}
}

func (l *level) add(s Sample) {
	t := sumsOf(s)
	if s.Now.Add(-s.Dt).Before(l.from) {
		return
	}
	l.sum.add(t)
	if len(l.ticks) == keptTicks {
		l.ticks = append(l.ticks[:0], l.ticks[keptTicks/2:]...)
	}
	l.ticks = append(l.ticks, t)
}

// tells whether the level is old enough, or has seen enough, for a step from it.
func (l *level) tells(now time.Time, lat float64) bool {
	return l.sum.execs >= evidence || !now.Before(l.from.Add(seconds(2*lat)))
}

// recent sums the newest ticks that are of one world: a reference must not reach
// back to when things were different.
func (l *level) recent() sums {
	var sum sums
	spread := max(l.sum.variance(), leastSpread)
	for i := len(l.ticks) - 1; i >= 0; i-- {
		t := l.ticks[i]
		if t.execs > 0 && sum.execs > 0 {
			near := alike + 2*math.Sqrt(spread/sum.execs+spread/t.execs)
			if math.Abs(t.mean()-sum.mean()) > near {
				break
			}
		}
		sum.add(t)
	}
	return sum
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
