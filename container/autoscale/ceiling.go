package autoscale

import "time"

// lanesFor is how long a number of lanes is remembered: a lull of keys is no reason
// to stop growing.
const lanesFor = 5 * time.Second

// ceiling is the most workers that bounds, permits and window leave room for, and
// which of them it is.
func ceiling(s Sample) (top int, limit string) {
	top, limit = s.Max, LimitMax
	if s.Permits >= 0 && s.Permits < top {
		top, limit = s.Permits, LimitPermits
	}
	if s.Window > 0 && s.Window < top {
		top, limit = s.Window, LimitWindow
	}
	return max(top, s.Min), limit
}

// demand is a number at a time.
type demand struct {
	at time.Time // when it was so
	n  int       // the number
}

// recently keeps the maximum of a sliding window of time: the newest of each size,
// decreasing, so the first is the largest.
type recently struct {
	seen []demand // the newest last
}

func (r *recently) add(now time.Time, n int, keep time.Duration) {
	for len(r.seen) > 0 && r.seen[len(r.seen)-1].n <= n {
		r.seen = r.seen[:len(r.seen)-1]
	}
	r.seen = append(r.seen, demand{now, n})
	old := 0
	for now.Sub(r.seen[old].at) > keep {
		old++
	}
	r.seen = append(r.seen[:0], r.seen[old:]...)
}

func (r *recently) most() int {
	if len(r.seen) == 0 {
		return 0
	}
	return r.seen[0].n
}

// cap lowers a ceiling to the most lanes that had something to run within the
// last seconds: more workers than that find nothing to do. It only limits growth,
// so that a lull of keys takes no worker away.
func (r *recently) cap(s Sample, top int, limit string) (int, string) {
	if s.Lanes < 0 {
		r.seen = r.seen[:0]
		return top, limit
	}
	r.add(s.Now, s.Lanes, lanesFor)
	if most := max(r.most(), s.Min, 1); most < top {
		return most, LimitLanes
	}
	return top, limit
}
