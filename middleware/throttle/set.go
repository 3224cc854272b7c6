package throttle

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// SetPermits changes how much may be worked on at once, from now on. 0 holds
// everything, a negative number too. Where an [Override] or a [Fleet] says
// otherwise, theirs is in force until it ends.
func (l *Limiter) SetPermits(n int) {
	l.change(func() { l.base.Permits = max(n, 0) })
}

// AddPermits adds d permits, or takes −d away, and returns what results: at least
// 0. A limiter without a limit stays so, and −1 is returned.
func (l *Limiter) AddPermits(d int) (permits int) {
	l.change(func() {
		if l.base.Permits >= 0 {
			l.base.Permits = addClamped(l.base.Permits, d)
		}
		permits = l.base.Permits
	})
	return permits
}

func addClamped(a, b int) int {
	if b > 0 && a > math.MaxInt-b {
		return math.MaxInt
	}
	return max(a+b, 0)
}

// SetRate changes how much may start per second, from now on; waiting ones follow
// the new rate. 0 holds everything; so do a negative number, an infinite one and NaN.
func (l *Limiter) SetRate(perSecond float64) {
	l.change(func() { l.base.Rate = sane(perSecond) })
}

// sane is a rate that arithmetic cannot have made unlimited.
func sane(perSecond float64) float64 {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 0) || perSecond < 0 {
		return 0
	}
	return min(perSecond, maxRate)
}

// SetBurst changes how much of an unused rate may start at once. 0 or less: a
// tenth of a second's worth, at least 1.
func (l *Limiter) SetBurst(n int) {
	l.change(func() { l.base.Burst = max(n, 0) })
}

// Unlimit opens both limits.
func (l *Limiter) Unlimit() {
	l.change(func() { l.base.Permits, l.base.Rate = unlimited, unlimited })
}

// UnlimitPermits opens the limit for what runs at once.
func (l *Limiter) UnlimitPermits() {
	l.change(func() { l.base.Permits = unlimited })
}

// UnlimitRate opens the limit for starts per second.
func (l *Limiter) UnlimitRate() {
	l.change(func() { l.base.Rate = unlimited })
}

// change edits the wanted value and lets it take effect.
func (l *Limiter) change(edit func()) {
	l.mu.Lock()
	edit()
	l.apply()
}

// apply works out the state in force and notifies all watchers. The caller holds mu, which
// is given up.
func (l *Limiter) apply() {
	was := l.now
	l.now = l.base
	for i := range l.layers {
		l.layers[i].over(&l.now)
	}
	if l.now != was {
		l.refill(was)
		l.refused = true // the watchers are to look at the limits in any case
	}
	l.serve(time.Now())
	var tell []*watcher
	if l.refused {
		l.refused = false
		tell = l.watchers
	}
	l.mu.Unlock()
	for _, w := range tell {
		w.changed()
	}
}

// refill lets the bucket follow the rate; its tokens stay. The caller holds mu.
func (l *Limiter) refill(was Limits) {
	if l.now.Rate <= 0 {
		l.bucket, l.spare = nil, 0
		return
	}
	limit, burst := rate.Limit(l.now.Rate), l.now.burst()
	switch {
	case l.bucket == nil:
		l.bucket = rate.NewLimiter(limit, burst)
	case was.Rate != l.now.Rate || was.burst() != burst:
		l.spare = 0
		l.bucket.SetLimitAt(l.seen, limit)
		l.bucket.SetBurstAt(l.seen, burst)
	}
}

// handful is how many tokens are taken at a time where there are plenty: asking the
// bucket for each one would cost more than all the rest.
func (m Limits) handful() int { return max(min(m.burst()/16, 16), 1) }

func (m Limits) burst() int {
	if m.Burst > 0 {
		return m.Burst
	}
	return max(int(m.Rate/10), 1)
}
