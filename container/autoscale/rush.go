package autoscale

// While calls take about a second, a level takes seconds to tell whether it was
// worth it, and five of them a quarter of a minute. What unproven workers can do is
// little as long as they are few and calls short: the first ones are not judged,
// and the next step is a large one, judged as usual.
const (
	rushLatency = 2.0 // seconds: longer calls are waited for
	rushFree    = 8   // so many workers need no proof
	rushBlind   = 4   // nor so many when no call has ended yet
	rushBy      = 4.0
)

// mayRush says whether to grow before the present level tells anything.
func (a *adaptive) mayRush(n int) bool {
	if a.knee.at > 0 || a.meter.latency() > rushLatency {
		return false
	}
	return n < rushFree || n == rushFree && a.level.sum.execs >= leastRef
}
