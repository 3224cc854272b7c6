package container

import (
	"math"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/state"
)

const (
	hotCapacity = 0.85
	latencyFor  = 5.0 // seconds over which the latency is smoothed
	extraFor    = 10 * time.Second
	fitsFor     = 5 * time.Second
)

// Scaling is what the autoscale policy did last, and what limits it.
type Scaling struct {
	// From and To are the targets of the last change, At its time and Reason the
	// policy's word for it.
	From, To int
	At       time.Time
	Reason   string
	// Ups and Downs count the changes of this run, Reasons the same for each word of the
	// policy; beyond 32 words they are counted as "other".
	Ups, Downs int64
	Reasons    map[string]Moves
	// Limit names what keeps the target from growing now: "max", "permits", "lanes",
	// "knee" and so on; empty when nothing does. See the constants of autoscale.
	Limit string
	// Knee is the count of workers from which on more bring nothing; 0: none known.
	Knee int
}

// Moves counts changes of the target.
type Moves struct{ Ups, Downs int64 }

// mostReasons bounds what is a label of metrics, and comes from the user's policy.
const mostReasons = 32

func (s *Scaling) note(now time.Time, from, to int, reason string) {
	s.From, s.To, s.At, s.Reason = from, to, now, reason
	if _, known := s.Reasons[reason]; !known && len(s.Reasons) >= mostReasons {
		reason = "other"
	}
	if s.Reasons == nil {
		s.Reasons = map[string]Moves{}
	}
	m := s.Reasons[reason]
	if to > from {
		s.Ups++
		m.Ups++
	} else {
		s.Downs++
		m.Downs++
	}
	s.Reasons[reason] = m
}

// sample closes a tick. The caller holds mu.
func (r *engine) sample(now time.Time) autoscale.Sample {
	c := &r.count
	s := autoscale.Sample{Now: now, Dt: now.Sub(r.tick.last), Min: r.pool.min, Max: r.pool.max - r.pool.standIns.n, Workers: r.pool.target,
		BusySec: c.busySec, Completed: c.completed, Execs: c.execs, Failed: c.failed, SumLog: c.sumLog, SumLog2: c.sumLog2,
		Queued: r.startableNow(), Backlog: r.tick.backlog, BacklogAge: -1, Permits: -1, Window: r.fits(now), Lanes: -1, Rate: -1,
		Paused: r.axes.Sub != state.Open || r.axes.Stopping() || r.axes.Holds.Has(state.Operator|state.Middleware)}
	for _, w := range r.pool.workers {
		if started := w.busy.Load(); started != 0 && !w.hung {
			s.BusySec += r.busySince(started, now)
			if w.waits > 0 { // in Delivery.Wait: neither busy nor latency
				s.BusySec -= r.busySince(w.waitAt.UnixNano(), now)
			} else {
				s.Busy++
			}
		}
	}
	s.BusySec = max(s.BusySec, 0)
	r.noteFull()
	s.FullFrac = float64(r.tick.fullHits) / float64(r.tick.fullSeen)
	r.tick.fullHits, r.tick.fullSeen = 0, 0
	if !r.tick.backlogAt.IsZero() {
		s.BacklogAge = now.Sub(r.tick.backlogAt)
	}
	if r.s.gate != nil {
		s.Permits, s.Rate = r.s.gate.Limits()
	}
	if r.s.ordered {
		s.Lanes = r.sched.Abreast()
	}
	s.ActiveTripped, s.IdleTripped = r.tripped(now, s.Dt, s.Paused || r.gateShut)
	r.measure(s)
	r.tick.last = now
	c.busySec, c.completed, c.execs, c.failed, c.sumLog, c.sumLog2 = 0, 0, 0, 0, 0, 0
	return s
}

// fits is how many workers the bytes that may be held are enough for; −1: for all.
// The largest of the last seconds counts, so that one huge message takes no worker
// away. The caller holds mu.
func (r *engine) fits(now time.Time) int {
	if r.count.received == 0 {
		return -1
	}
	n := max(int(r.s.maxBytes/max(r.sched.Mean(), 1))/max(r.s.batch, 1), 1)
	if t := &r.tick; n >= t.fits || now.Sub(t.fitsAt) > fitsFor {
		t.fits, t.fitsAt = n, now
	}
	if r.tick.fits >= r.pool.max {
		return -1
	}
	return r.tick.fits
}

// startableNow counts what is here and could start: not what waits behind another
// of its lane, and no parked retries. The caller holds mu.
func (r *engine) startableNow() int { return r.sched.Ready() + r.tick.buffered }

// measure keeps what the container itself needs to know of a tick. The caller
// holds mu.
func (r *engine) measure(s autoscale.Sample) {
	dt := s.Dt.Seconds()
	if dt <= 0 {
		return
	}
	t := &r.tick
	t.capacity = min(s.BusySec/dt/float64(max(r.pool.target, 1)), 1)
	switch {
	case t.capacity < hotCapacity:
		t.hotSince = time.Time{}
	case t.hotSince.IsZero():
		t.hotSince = s.Now
	}
	if s.Completed > 0 {
		lat := s.BusySec / float64(s.Completed)
		if t.latency == 0 {
			t.latency = lat
		}
		t.latency += (lat - t.latency) * min(dt/latencyFor, 1)
	}
	r.lookFurther(s.Now)
}

// lookFurther holds more beside the workers where a receive takes about as long
// as a handler: enough that no worker waits for it. Less is held only after a
// while, so that the window does not flutter. The caller holds mu.
func (r *engine) lookFurther(now time.Time) {
	t := &r.tick
	extra := 0.0
	if t.recvs > 0 && t.latency > 0 {
		extra = min(math.Round(4*t.recv/float64(t.recvs)/t.latency)/2, 1)
	}
	if t.recvs > 0 && extra >= t.extra || now.Sub(t.extraAt) > extraFor {
		t.extra, t.extraAt = extra, now
	}
	t.recv, t.recvs = 0, 0
}

// noteReceive looks at a receive that ends: how long it took if much was there to
// be had, and whether the receiver waited for work. The caller holds mu.
func (r *dispatcher) noteReceive(asked, got int, took time.Duration) {
	much := got > 1 && got >= min(asked, minLookahead)
	if much && took >= slowReceive {
		r.tick.recv += took.Seconds()
		r.tick.recvs++
	}
	r.tick.cycles.waited = took >= slowReceive && !much
}

// window is how many deliveries may be held, parked retries not counted. The
// caller holds mu.
func (r *dispatcher) window() int {
	n := r.s.window(r.pool.target) + (r.pool.places()-r.pool.target)*max(r.s.batch, 1) // what hangs takes no one's place
	if r.s.look == 0 && r.s.batch == 0 {
		n += int(r.tick.extra * float64(r.pool.target))
	}
	return n
}

// noteFull notes whether work waits; called whenever a call ends and at the tick.
// The caller holds mu.
func (r *engine) noteFull() {
	r.tick.fullSeen++
	if waits := r.startableNow(); waits > 0 && 2*waits >= r.window()-r.pool.target {
		r.tick.fullHits++
	}
}
