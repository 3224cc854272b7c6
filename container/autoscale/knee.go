package autoscale

import (
	"math"
	"time"
)

const (
	probeFirst = 20 * time.Second
	probeMost  = 60 * time.Second
	probeAgain = 2 * time.Second
	probeStep  = 1.25
	slower     = 1.5 // times the latency at the knee: it may have moved down
)

// knee is the count from which on more workers brought nothing.
type knee struct {
	at      int           // 0: none is known
	latency float64       // there, the mean of logarithms; NaN: not measured yet
	wait    time.Duration // until it is looked for again
	next    time.Time     // of the next probe
	down    bool          // its direction
	doubted bool          // it may be far lower: nobody has looked yet
	slow    bool          // seems to be slower there than it was
	hot     time.Time     // last saturation
}

func (k *knee) set(now time.Time, at int, _ sums) {
	*k = knee{at: at, latency: math.NaN(), wait: probeFirst, next: now.Add(probeFirst), hot: now}
}

// suspect: it may be lower, which nobody has looked for yet.
func (k *knee) suspect(now time.Time, at int) {
	k.set(now, at, sums{})
	k.next, k.down, k.doubted = now, true, true
}

// stands: going back to it cost nothing.
func (k *knee) stands(now time.Time, there sums) {
	k.latency = there.perMessage()
	k.next = now.Add(k.wait)
	if k.doubted {
		k.next = now.Add(probeAgain)
	}
}

// lower: a probe showed that fewer do as well.
func (k *knee) lower(now time.Time, at int, there sums) {
	k.at, k.latency = at, there.perMessage()
	k.wait, k.next, k.down = probeFirst, now.Add(probeAgain), true
}

// held: a probe showed nothing better. The next one waits longer and goes the
// other way.
func (k *knee) held(now time.Time, _ sums) {
	k.wait = min(2*k.wait, probeMost)
	k.next, k.down, k.doubted = now.Add(k.wait), !k.down, false
	k.latency = math.NaN() // as it is after this
}

// rest forgets a knee that was not reached for long: the load was elsewhere, and
// the world may be too.
func (k *knee) rest(now time.Time, hot bool) {
	switch {
	case k.at == 0:
	case hot:
		k.hot = now
	case now.Sub(k.hot) >= forget:
		*k = knee{}
	}
}

// probe tries whether the knee is where it was.
func (a *adaptive) probe(s Sample) (d Decision, probing bool) {
	k, n := &a.knee, s.Workers
	if a.set.NoProbe || !a.meter.hot {
		return d, false
	}
	now := a.level.recent()
	if now.execs < convict { // a probe is a small step: it needs a good reference
		return d, false
	}
	if math.IsNaN(k.latency) {
		k.latency = now.perMessage()
	}
	slow := now.perMessage() > k.latency+math.Log(slower)
	switch {
	case !slow:
		k.slow = false
	case !k.slow: // the world has changed: measure again, since while latency rises any step looks bad
		k.slow = true
		a.forgetLevel(s)
		a.proven = 0
		return d, false
	case a.level.sum.dt < max(1, 3*a.latency()):
		return d, false
	}
	if !slow && s.Now.Before(k.next) {
		return d, false
	}
	top, _ := ceiling(s)
	up := min(max(int(math.Round(float64(n)*probeStep)), n+1), top)
	down := max(min(int(float64(n)/probeStep), n-1), s.Min)
	if slow {
		k.latency, k.down, k.slow = now.perMessage(), true, false
	}
	if k.down && down == n || !k.down && up == n { // no room: the other way next time
		k.down = !k.down
		k.next = s.Now.Add(k.wait)
		return d, false
	}
	if k.down {
		a.open(probeDown, s)
		return Decision{Target: down, Reason: ProbeDown, Limit: LimitKnee}, true
	}
	a.open(probeUp, s)
	return Decision{Target: up, Reason: ProbeUp, Limit: LimitKnee}, true
}
