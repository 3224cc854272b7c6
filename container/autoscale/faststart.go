package autoscale

import "math"

// While calls take about a second, a level takes seconds to tell whether it was
// worth it, and five of them a quarter of a minute. What unproven workers can do is
// little as long as they are few and calls short: the first ones are not judged,
// and the next step is a large one, judged as usual.
const (
	rushLatency = 2.0 // seconds: longer calls are waited for
	rushFree    = 8   // so many workers need no proof
	rushBlind   = 4   // nor so many when no call has ended yet
	rushBy      = 4.0
	rushSlower  = 2.0 // times the latency with a few: no large step
)

// mayRush says whether to grow before the present level tells anything.
func (a *adaptive) mayRush(n int) bool {
	if a.knee.at > 0 || a.meter.latency() > rushLatency {
		return false
	}
	return n < rushFree || n == rushFree && a.level.sum.execs >= leastRef && !a.slower()
}

// slower says that calls take clearly longer than they did with a few workers: then
// the downstream of even the few is near its end, and the next step is judged first.
func (a *adaptive) slower() bool {
	few, now := a.few, a.level.sum
	if few.execs < leastRef || now.execs < leastRef {
		return false
	}
	spread := max(few.variance(), now.variance(), leastSpread)
	doubt := sigma * math.Sqrt(spread/few.execs+spread/now.execs)
	return now.perMessage()-few.perMessage() > max(math.Log(rushSlower), doubt)
}

// noteFew keeps what calls cost while there are a few workers: the first ones that
// end, and again whenever the pool rests at its minimum.
func (a *adaptive) noteFew(s Sample) {
	switch {
	case a.few.execs < leastRef:
		a.few.add(sumsOf(s))
	case s.Workers <= s.Min && !a.meter.hot && a.level.sum.execs >= evidence:
		a.few = a.level.recent()
	}
}
