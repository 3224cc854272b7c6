package container

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

const (
	tickEvery    = 500 * time.Millisecond
	resizeEvery  = time.Second
	backlogEvery = 5 * time.Second
	backlogSoon  = time.Second
)

// Scaling is what the autoscale policy did last, and what limits it.
type Scaling struct {
	// From and To are the targets of the last change, At its time and Reason the
	// policy's word for it.
	From, To int
	At       time.Time // when the target was changed last; zero: never
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
type Moves struct {
	Ups, Downs int64 // of the target
}

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

// scaler works twice a second: it measures, lets the policy decide how many workers there
// should be, and moves the target and the broker's window. The supervisor calls it.
type scaler struct {
	common
	calls // to the transport, each with a deadline

	axes    *axes         // while it is held or paused, the policy does not move the target
	sub     *subscription // whose window it moves, and whose backlog it reads
	hand    *handout      // what follows the target
	pool    *pool         // whose target it moves
	intake  *intake       // whether a worker could take a delivery now
	gate    *gatekeeper   // whether a permit keeps work from starting
	held    *stock        // what waits
	load    *load         // what is measured
	count   *counters     // whether anything was received
	pending *pending      // when the supervisor calls it

	policy  autoscale.Scaler // the user's, or ours: called by the supervisor only, without the lock
	monitor *monitor         // looks for calls and lanes that do not get on
	resized time.Time        // when the window was moved last
}

// arm makes the supervisor call onTick again.
func (s *scaler) arm() {
	s.locked(func() {
		if s.axes.Stopping() {
			return
		}
		s.load.tick = s.s.clock.AfterFunc(tickEvery, func() {
			s.locked(func() { s.pending.tick = true })
			s.wake()
		})
	})
}

// onTick samples, lets the policy decide, and does what is done now and then.
func (s *scaler) onTick() {
	g := s.sub.gen // only the supervisor, which calls this, changes it
	s.locked(func() { s.pending.tick = false })
	buffered := 0
	if g != nil {
		if b, ok := g.c.(transport.Bufferer); ok {
			buffered = b.Buffered()
		}
		s.readBacklog(g)
	}
	now := s.now()
	var sample autoscale.Sample
	s.locked(func() {
		s.load.backlog.buffered = buffered
		s.monitor.lookLocked(now)
		sample = s.sampleLocked(now)
	})
	d := s.decide(sample)
	s.locked(func() { s.load.scaling.Limit, s.load.scaling.Knee = d.Limit, d.Knee })
	if !sample.Paused {
		s.scaleTo(d.Target, d.Reason)
	}
	s.monitor.reportStuck(now)
	if g != nil {
		s.followWorkers(g)
		s.resize(g, now)
	}
	s.arm()
}

// sampleLocked is what the policy learns about the tick that ends.
func (s *scaler) sampleLocked(now time.Time) autoscale.Sample {
	s.load.noteQueued(s.held.sched.Ready(), s.hand.window()-s.pool.target)
	a := s.load.calls.close(now, s.pool.workers, s.pool.target)
	s.load.ahead.adjust(now, s.load.calls.latency)
	a.Min, a.Max, a.Workers = s.pool.min, s.pool.max-s.pool.standIns.n, s.pool.target
	a.Queued, a.Backlog, a.BacklogAge = s.held.sched.Ready()+s.load.backlog.buffered, s.load.backlog.n, -1
	a.Permits, a.Rate, a.Window, a.Lanes = -1, -1, -1, -1
	a.Paused = s.axes.Sub != state.Open || s.axes.Stopping() || s.axes.Holds.Has(state.Operator|state.Middleware)
	if at := s.load.backlog.at; !at.IsZero() {
		a.BacklogAge = now.Sub(at)
	}
	if s.count.received > 0 {
		fit := int(s.s.maxBytes/max(s.held.sched.Mean(), 1)) / max(s.s.batch, 1)
		a.Window = s.load.fits.limit(now, max(fit, 1), s.pool.max)
	}
	if s.s.gate != nil {
		a.Permits, a.Rate = s.s.gate.Limits()
	}
	if s.s.ordered {
		a.Lanes = s.held.sched.Abreast()
	}
	held := a.Paused || s.gate.shut
	if s.load.cycles.exact() {
		a.ActiveTripped, a.IdleTripped = s.load.cycles.trippedEach(now, a.Dt, s.pool.workers, held)
		return a
	}
	a.ActiveTripped, a.IdleTripped = s.load.cycles.tripped(now, a.Dt, s.pool.target, held)
	return a
}

// decide calls the policy, which may be the user's. One that panics changes nothing.
func (s *scaler) decide(a autoscale.Sample) (d autoscale.Decision) {
	defer func() {
		if p := recover(); p != nil {
			s.notice(panicError(p), "the autoscale policy panicked; the workers stay")
			d = autoscale.Decision{Target: a.Workers}
		}
	}()
	return s.policy.Next(a)
}

// scaleTo moves the target, within the bounds in force.
func (s *scaler) scaleTo(n int, reason string) {
	s.retarget(reason, func() int { return n })
}

// bounds applies new bounds at once.
func (s *scaler) bounds(w Workers) {
	s.retarget("bounds changed", func() int {
		s.pool.min, s.pool.max = w.Min, w.Max
		return s.pool.target
	})
}

// retarget moves the target to what wanted returns, within the bounds in force then. The
// bounds and the target change under one lock, so that no snapshot shows a target outside
// of its bounds.
func (s *scaler) retarget(reason string, wanted func() int) {
	var from, n int
	var moved bool
	s.locked(func() {
		n, from = wanted(), s.pool.target
		n = min(max(n, s.pool.min), s.pool.max)
		if moved = n != from && !s.axes.Stopping(); moved {
			s.hand.setTarget(n)
			s.load.scaling.note(s.now(), from, n, reason)
		}
	})
	if moved {
		s.emit(Event{Kind: EventScaled, From: from, To: n, Reason: reason,
			Text: fmt.Sprintf("%d → %d workers: %s", from, n, reason)})
	}
}

// resize passes a new window on to the transport. Growing is urgent; shrinking happens at
// most once every resizeEvery.
func (s *scaler) resize(g *generation, now time.Time) {
	z, ok := g.c.(transport.Resizer)
	var want int
	var wait bool
	s.locked(func() {
		s.pending.resize = false
		want = s.hand.wantedWindow()
		if wait = g.window.met(want) || want < g.window.n && now.Sub(s.resized) < resizeEvery; !wait && !ok {
			g.window.n = want
		}
		if !wait {
			g.window.asked = want
		}
	})
	if wait || !ok {
		return
	}
	s.resized = now
	err := s.callBriefly(func(ctx context.Context) error { return z.Resize(ctx, want) })
	s.locked(func() { g.window.answered(want, err) })
	if err != nil && s.opening.Err() == nil {
		s.notice(err, "resizing the broker's window failed; it will be tried again")
	}
}

// followWorkers tells a transport that has a consumer per worker how many workers there are.
func (s *scaler) followWorkers(g *generation) {
	f, ok := g.c.(transport.WorkerFollower)
	if !ok {
		return
	}
	var want int
	var met bool
	s.locked(func() {
		want = s.pool.places()
		met = g.workers.met(want)
	})
	if met {
		return
	}
	err := s.callBriefly(func(ctx context.Context) error { return f.FollowWorkers(ctx, want) })
	s.locked(func() { g.workers.answered(want, err) })
	if err != nil && s.opening.Err() == nil {
		s.notice(err, "the consumers do not follow the workers yet; it will be tried again")
	}
}

// readBacklog reads now and then how much waits at the broker.
func (s *scaler) readBacklog(g *generation) {
	b, ok := g.c.(transport.Backlogger)
	now := s.now()
	if !ok || !s.load.backlog.due(now, s.load.calls.hotSince) { // only the supervisor writes these
		return
	}
	s.load.backlog.asked = now
	_ = s.callBriefly(func(ctx context.Context) error { // after a failure the age of the last reading grows
		n, at, err := b.Backlog(ctx)
		if err == nil {
			s.locked(func() { s.load.backlog.n, s.load.backlog.at = n, at })
		}
		return err
	})
}

// Idle reports whether nothing is queued at the broker as far as it tells, in the
// transport, or here: waiting, running or parked. For tests and tools.
func (c *ListenerContainer) Idle(ctx context.Context) (bool, error) {
	r := c.current()
	if r == nil {
		return false, nil
	}
	var g *generation
	var empty bool
	r.locked(func() {
		g = r.sub.gen
		empty = r.held.sched.Total().N == 0 && !r.count.delayed.until.After(r.now())
	})
	if g == nil || !empty {
		return false, nil
	}
	if b, ok := g.c.(transport.Bufferer); ok && b.Buffered() > 0 {
		return false, nil
	}
	if b, ok := g.c.(transport.Backlogger); ok {
		if n, _, err := b.Backlog(ctx); err != nil || n > 0 {
			return false, err
		}
	}
	r.locked(func() { empty = r.sub.gen == g && r.held.sched.Total().N == 0 })
	return empty, nil
}
