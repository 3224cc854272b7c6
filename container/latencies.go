package container

import (
	"math"
	"time"
)

const (
	latencyEvery = 10 * time.Second // a window; quantiles are those of the current and the one before
	perE         = 4                // buckets to a factor of e: 25 % apart
	lowestLn     = -14              // e^-14 s is 0.8 µs
	highestLn    = 12               // and e^12 s 45 h
	fewCalls     = 20               // calls from which on a window tells what is usual

	grownFrom = 50 * time.Millisecond // a median below it is no slow downstream
	grownBy   = 3
	overdueBy = 4 // times the 99th percentile
)

// latencies are the times of the handler calls of the last 10 to 20 s in buckets, and
// what was usual before.
type latencies struct {
	now, before buckets   // the period that fills, and the one before
	began       time.Time // when now began
	usual       float64   // median in seconds: follows down quickly, up over hours
}

type buckets struct {
	n  int                                  // calls
	of [(highestLn - lowestLn) * perE]int32 // calls by the logarithm of their time
}

// add takes the natural logarithm of a call's seconds.
func (l *latencies) add(ln float64) {
	i := min(max(int((ln-lowestLn)*perE), 0), len(l.now.of)-1)
	l.now.of[i]++
	l.now.n++
}

// rotate begins a new window when the current one is over.
func (l *latencies) rotate(now time.Time) {
	if l.began.IsZero() {
		l.began = now
	}
	if now.Sub(l.began) < latencyEvery {
		return
	}
	if l.now.n >= fewCalls {
		switch median := (&latencies{now: l.now}).quantile(0.5).Seconds(); {
		case l.usual == 0:
			l.usual = median
		case median < l.usual:
			l.usual += (median - l.usual) / 4
		default:
			l.usual = min(median, l.usual*1.002) // three times as much takes an hour and a half
		}
	}
	l.before, l.now, l.began = l.now, buckets{}, now
}

// quantile is the upper bound of the bucket in which it lies.
func (l *latencies) quantile(q float64) time.Duration {
	want := int(math.Ceil(q * float64(l.now.n+l.before.n)))
	if want == 0 {
		return 0
	}
	for i := range l.now.of {
		if want -= int(l.now.of[i] + l.before.of[i]); want <= 0 {
			return time.Duration(math.Exp(lowestLn+float64(i+1)/perE) * float64(time.Second))
		}
	}
	return 0
}

func (l *latencies) calls() Calls {
	return Calls{P50: l.quantile(0.5), P99: l.quantile(0.99), Usual: time.Duration(l.usual * float64(time.Second))}
}

func (l *latencies) grown() bool { return l.calls().Grown() }
