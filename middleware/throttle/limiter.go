package throttle

import (
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter holds permits and a rate, either of which may be unlimited. It is a
// container.Gate. Make one with [NewPermits], [NewRate] or [NewUnlimited].
type Limiter struct {
	mu      sync.Mutex
	base    Limits
	layers  [layerCount]layer
	now     Limits // in force: base under the layers
	inUse   int
	refused bool          // a caller waits for Watch
	bucket  *rate.Limiter // nil: no rate, or 0
	spare   int           // tokens taken and not used
	seen    time.Time     // the latest time that a caller came with
	queue   []*waiter     // of Acquire, the oldest first
	timer   *time.Timer   // when the head of the queue is to look again

	watchers []*watcher // replaced, never changed
}

type watcher struct{ changed func() }

// Limits is what a limiter allows.
type Limits struct {
	// Permits is how much may be worked on at once. Negative: no limit.
	Permits int `json:"permits"`
	// Rate is how much may start per second. Negative: no limit.
	Rate float64 `json:"rate"`
	// Burst is how much of an unused rate may start at once. 0: a tenth of a second's
	// worth, at least 1.
	Burst int `json:"burst,omitempty"`
}

const (
	unlimited = -1
	maxRate   = 1e9
)

// NewPermits makes a limiter with n permits and no rate. 0 holds everything.
func NewPermits(n int) *Limiter {
	l := NewUnlimited()
	l.SetPermits(n)
	return l
}

// NewRate makes a limiter of perSecond starts per second, without a limit for what
// runs at once. 0 holds everything.
func NewRate(perSecond float64) *Limiter {
	l := NewUnlimited()
	l.SetRate(perSecond)
	return l
}

// NewUnlimited makes a limiter that lets everything through until it is told
// otherwise: for a container that is to be throttled some day.
func NewUnlimited() *Limiter {
	open := Limits{Permits: unlimited, Rate: unlimited}
	return &Limiter{base: open, now: open}
}

// TryAcquire takes a permit and a start, or neither. If it could not, again is when
// to ask next; zero: when Watch says so. Whoever waits in [Acquire] comes first.
func (l *Limiter) TryAcquire(now time.Time) (ok bool, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		l.refused = true
		return false, time.Time{}
	}
	ok, again = l.take(now)
	l.refused = l.refused || !ok && again.IsZero()
	return ok, again
}

// take is one attempt. The caller holds mu.
func (l *Limiter) take(now time.Time) (ok bool, again time.Time) {
	if l.now.Permits >= 0 && l.inUse >= l.now.Permits {
		return false, time.Time{}
	}
	if l.now.Rate >= 0 {
		if ok, again = l.token(now); !ok {
			return false, again
		}
	}
	l.inUse++
	return true, time.Time{}
}

// token takes a start from the bucket. The caller holds mu.
func (l *Limiter) token(now time.Time) (ok bool, again time.Time) {
	if l.bucket == nil { // a bucket with a rate of 0 would still give its burst
		return false, time.Time{}
	}
	if now.After(l.seen) {
		l.seen = now
	}
	if l.spare > 0 {
		l.spare--
		return true, time.Time{}
	}
	if n := l.now.handful(); l.bucket.AllowN(now, n) {
		l.spare = n - 1
		return true, time.Time{}
	} else if n > 1 && l.bucket.AllowN(now, 1) {
		return true, time.Time{}
	}
	wait := (1 - l.bucket.TokensAt(now)) / l.now.Rate * float64(time.Second)
	return false, now.Add(time.Duration(min(math.Ceil(max(wait, 0)), float64(math.MaxInt64/4))) + 1)
}

// Release gives a permit back, once for each that was taken.
func (l *Limiter) Release() {
	l.mu.Lock()
	if l.inUse > 0 {
		l.inUse--
	}
	if !l.refused && len(l.queue) == 0 {
		l.mu.Unlock()
		return
	}
	l.advance()
}

// advance serves the queue and notifies the watchers, if there may be something for
// them. The caller holds mu, which is given up.
func (l *Limiter) advance() {
	l.serve(time.Now())
	var tell []*watcher
	if l.refused && len(l.queue) == 0 && (l.now.Permits < 0 || l.inUse < l.now.Permits) {
		l.refused = false
		tell = l.watchers
	}
	l.mu.Unlock()
	for _, w := range tell {
		w.changed()
	}
}

// Limits reports the permits and the rate in force; negative means no limit.
func (l *Limiter) Limits() (permits int, perSecond float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Permits, l.now.Rate
}

// Watch calls changed whenever the limits change, and when TryAcquire may have
// another answer than it last had. changed must not block. stop ends it; a call
// that is under way may end after stop has returned.
func (l *Limiter) Watch(changed func()) (stop func()) {
	w := &watcher{changed}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(slices.Clip(slices.Clone(l.watchers)), w)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watchers = slices.DeleteFunc(slices.Clone(l.watchers), func(x *watcher) bool { return x == w })
	}
}
