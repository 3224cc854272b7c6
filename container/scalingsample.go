package container

import (
	"math"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
)

const (
	hotCapacity = 0.85 // the share of busy time from which on the backlog is read more often
	latencyFor  = 5.0  // seconds over which the latency is smoothed
	extraFor    = 10 * time.Second
	fitsFor     = 5 * time.Second
)

// load is what is measured of a run: for the policy, for the window, and for Stats. Its
// parts are plain and know nothing of each other. Guarded by guard.mu.
type load struct {
	calls    workload  // handler calls of this tick
	ahead    lookahead // what a slow receive makes worth holding
	fits     fitting   // workers that the bytes are enough for
	cycles   cycles    // how long workers wait, for policies that ask
	backlog  backlog   // what waits outside
	capacity capacity  // the share of time in which a delivery would start at once
	scaling  Scaling   // what the policy did last

	tick     longshore.Timer // of the next tick
	sampling longshore.Timer // of the next look at the capacity
}

// noteQueued notes whether work waits, while so many may be held beside the workers; called
// whenever a call ends and at the tick.
func (l *load) noteQueued(ready, spare int) {
	if n := l.waiting(ready); n > 0 {
		l.calls.queued(n, spare)
	} else {
		l.calls.queued(0, 0)
	}
}

// waiting is what waits for a worker, here and in the transport.
func (l *load) waiting(ready int) int { return ready + l.backlog.buffered }

// workload is the handler calls of the current tick, and what the ticks before have shown.
type workload struct {
	since time.Time // the tick began then: the earlier part of a call has been counted

	completed     int     // deliveries that were settled in this tick
	execs, failed int     // calls that ended in it, and those of them that failed
	busySec       float64 // of these calls, within the tick
	sumLog        float64 // of the logarithms of their times, for the policy's idea of their spread
	sumLog2       float64 // and of the squares

	looks, full int       // how often the queue was looked at, and how often half of the lookahead waited
	capacity    float64   // share of worker time that was busy in the last tick, 0 to 1
	hotSince    time.Time // workers have been busy nearly all the time since; zero: they are not
	latency     float64   // seconds per delivery, smoothed; 0: none has ended
}

// ended counts a call. ln is the logarithm of its time.
func (l *workload) ended(started int64, end time.Time, ln float64, failed bool) {
	l.busySec += l.within(started, end)
	l.execs++
	if failed {
		l.failed++
	}
	l.sumLog += ln
	l.sumLog2 += ln * ln
}

// waited takes the time off that a handler spent in Delivery.Wait.
func (l *workload) waited(from, to time.Time) { l.busySec -= l.within(from.UnixNano(), to) }

// within is the part of a call, up to now, that lies in the tick, in seconds.
func (l *workload) within(started int64, now time.Time) float64 {
	return max(float64(now.UnixNano()-max(started, l.since.UnixNano()))/1e9, 0)
}

// queued notes, at the end of each call, how much could start while so many may be held
// beside the workers.
func (l *workload) queued(startable, spare int) {
	l.looks++
	if startable > 0 && 2*startable >= spare {
		l.full++
	}
}

// close ends the tick: it adds the calls that run and returns the sample for the policy.
func (l *workload) close(now time.Time, workers []*worker, target int) autoscale.Sample {
	s := autoscale.Sample{Now: now, Dt: now.Sub(l.since), BusySec: l.busySec, Completed: l.completed,
		Execs: l.execs, Failed: l.failed, SumLog: l.sumLog, SumLog2: l.sumLog2}
	for _, w := range workers {
		started := w.busy.Load()
		if started == 0 || w.hung {
			continue
		}
		s.BusySec += l.within(started, now)
		if w.waits > 0 { // in Delivery.Wait: neither busy nor latency
			s.BusySec -= l.within(w.waitAt.UnixNano(), now)
		} else {
			s.Busy++
		}
	}
	s.BusySec = max(s.BusySec, 0)
	if l.looks > 0 {
		s.FullFrac = float64(l.full) / float64(l.looks)
	}
	l.learn(&s, target)
	*l = workload{since: now, capacity: l.capacity, hotSince: l.hotSince, latency: l.latency}
	return s
}

// learn keeps what the container itself needs to know of a tick.
func (l *workload) learn(s *autoscale.Sample, target int) {
	dt := s.Dt.Seconds()
	if dt <= 0 {
		return
	}
	l.capacity = min(s.BusySec/dt/float64(max(target, 1)), 1)
	switch {
	case l.capacity < hotCapacity:
		l.hotSince = time.Time{}
	case l.hotSince.IsZero():
		l.hotSince = s.Now
	}
	if s.Completed > 0 {
		took := s.BusySec / float64(s.Completed)
		if l.latency == 0 {
			l.latency = took
		}
		l.latency += (took - l.latency) * min(dt/latencyFor, 1)
	}
}

// hungAfter is the age from which on a call counts as one that hangs. As long as none has
// ended, nothing is known of how long calls take.
func (l *workload) hungAfter() time.Duration {
	if l.latency == 0 {
		return oldCall
	}
	return max(hungMin, time.Duration(hungTimes*l.latency*float64(time.Second)))
}

// lnSeconds is the natural logarithm of a latency in seconds, to 0.01: a parabola
// through the mantissa, at a tenth of the price of the exact one.
func lnSeconds(d time.Duration) float64 {
	const log2ns, mantissa = 29.897352853986263, 1<<52 - 1 // log2 of 1e9
	bits := math.Float64bits(float64(max(d, 1)))
	m := math.Float64frombits(bits&mantissa | 1023<<52)
	return math.Ln2 * (float64(bits>>52) - 1023 + (2-m/3)*m - 5.0/3 - log2ns)
}

// lookahead is how much more than usual is held beside the workers, where a receive takes
// about as long as a handler: enough that no worker waits for it.
type lookahead struct {
	sec   float64   // of the receives of this tick that found much
	n     int       // how many these are
	extra float64   // as a share of the workers
	at    time.Time // when it was found last: it shrinks only after a while, so that the window does not flutter
}

// received looks at a receive that ends and says whether the receiver waited for work.
func (a *lookahead) received(asked, got int, took time.Duration) (waited bool) {
	much := got > 1 && got >= min(asked, minLookahead)
	if much && took >= slowReceive {
		a.sec += took.Seconds()
		a.n++
	}
	return took >= slowReceive && !much
}

// adjust ends a tick.
func (a *lookahead) adjust(now time.Time, latency float64) {
	extra := 0.0
	if a.n > 0 && latency > 0 {
		extra = min(math.Round(4*a.sec/float64(a.n)/latency)/2, 1)
	}
	if a.n > 0 && extra >= a.extra || now.Sub(a.at) > extraFor {
		a.extra, a.at = extra, now
	}
	a.sec, a.n = 0, 0
}

// fitting is how many workers the bytes that may be held are enough for. The largest of
// the last seconds counts, so that one huge message takes no worker away.
type fitting struct {
	workers int       // the most that fitted lately
	at      time.Time // when so many fitted last
}

// limit is that number; −1: it limits nothing.
func (f *fitting) limit(now time.Time, fit, most int) int {
	if fit >= f.workers || now.Sub(f.at) > fitsFor {
		f.workers, f.at = fit, now
	}
	if f.workers >= most {
		return -1
	}
	return f.workers
}

// backlog is what waits outside: in the transport, and at the broker by its last answer.
type backlog struct {
	buffered int       // in the transport, at the last tick
	n        int64     // at the broker
	at       time.Time // of that reading; zero: the broker does not say
	asked    time.Time // when it was read last, whether it answered or not
}

// due says whether to read it now. While workers are busy it matters how much there is.
func (b *backlog) due(now, hotSince time.Time) bool {
	every := backlogEvery
	if b.asked.Before(hotSince) {
		every = backlogSoon
	}
	return now.Sub(b.asked) >= every
}

// waits says whether more may be there for a worker. A backlog that is not known may be.
func (b *backlog) waits() bool { return b.buffered > 0 || b.at.IsZero() || b.n > 0 }
