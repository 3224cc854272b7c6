package container

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
)

const (
	tickEvery    = 500 * time.Millisecond
	resizeEvery  = time.Second
	backlogEvery = 5 * time.Second
	backlogSoon  = time.Second
)

// tickState is what the sampling keeps; the fields read by Stats are guarded by
// engine.mu, and the supervisor is the only writer.
type tickState struct {
	began, last time.Time
	due         bool
	timer       longshore.Timer

	fullHits, fullSeen int // how often at least half of the lookahead waited
	capacity           float64
	hotSince           time.Time // since then workers are busy nearly all the time
	recv               float64   // seconds of receives that found much, and how many
	recvs              int
	latency            float64 // seconds per message, smoothed
	extra              float64 // of the workers, held beside the usual lookahead
	extraAt            time.Time
	fits               int // workers that the bytes held are enough for, and since when
	fitsAt             time.Time
	cycles             cycleState
	capa               capacityState
	scaling            Scaling
	buffered           int
	backlog            int64
	backlogAt          time.Time // time of the reading
	askedAt            time.Time
	resizedAt          time.Time
}

func (r *engine) armTick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.axes.Stopping() {
		return
	}
	r.tick.timer = r.s.clock.AfterFunc(tickEvery, func() {
		r.mu.Lock()
		r.tick.due = true
		r.mu.Unlock()
		r.wake()
	})
}

// onTick samples, asks the policy, and does what is done now and then.
func (r *engine) onTick() {
	r.mu.Lock()
	g := r.sub.gen
	r.tick.due = false
	r.mu.Unlock()
	buffered := 0
	if g != nil {
		if b, ok := g.c.(transport.Bufferer); ok {
			buffered = b.Buffered()
		}
		r.readBacklog(g)
	}
	now := r.now()
	r.mu.Lock()
	r.tick.buffered = buffered
	r.lookForHung(now)
	r.noteConditions(now)
	sample := r.sample(now)
	r.hotLane(now)
	r.watchAside()
	r.mu.Unlock()
	d := r.decide(sample)
	r.noteDecision(d)
	if !sample.Paused {
		r.scaleTo(d.Target, d.Reason)
	}
	r.lookForStuck(now)
	if g != nil {
		r.resize(g, now)
	}
	r.armTick()
}

// decide asks the policy, which may be the user's. One that panics changes nothing.
func (r *engine) decide(s autoscale.Sample) (d autoscale.Decision) {
	defer func() {
		if p := recover(); p != nil {
			r.notice(panicError(p), "the autoscale policy panicked; the workers stay")
			d = autoscale.Decision{Target: s.Workers}
		}
	}()
	return r.scaler.Next(s)
}

// noteDecision keeps what the policy says beside the target, for Stats.
func (r *engine) noteDecision(d autoscale.Decision) {
	r.mu.Lock()
	r.tick.scaling.Limit, r.tick.scaling.Knee = d.Limit, d.Knee
	r.mu.Unlock()
}

// scaleTo moves the target, within the bounds in force.
func (r *engine) scaleTo(n int, reason string) {
	r.mu.Lock()
	from := r.pool.target
	n = min(max(n, r.pool.min), r.pool.max)
	moved := n != from && !r.axes.Stopping()
	if moved {
		r.setTarget(n)
		r.tick.scaling.note(r.now(), from, n, reason)
	}
	r.mu.Unlock()
	if moved {
		r.emit(Event{Kind: EventScaled, From: from, To: n, Reason: reason,
			Text: fmt.Sprintf("%d → %d workers: %s", from, n, reason)})
	}
}

// bounds applies new bounds at once.
func (r *engine) bounds(w Workers) {
	r.mu.Lock()
	r.pool.min, r.pool.max = w.Min, w.Max
	n := r.pool.target
	r.mu.Unlock()
	r.scaleTo(n, "bounds changed")
}

// wantedWindow is what the broker should let us hold: what may be in work, and
// what is parked with room for more, in steps, so that a burst of failures does
// not eat the window before the broker has heard of it. The caller holds mu.
func (r *dispatcher) wantedWindow() int {
	base := r.window()
	if r.gateNow.seen {
		base = max(min(base, r.gateWindow(r.gateNow, r.pool.target)), 1)
	}
	beside := r.sched.Beside()
	if beside == 0 {
		return base
	}
	steps := (beside + base/2 + base - 1) / base
	return base * (1 + steps)
}

// noteParked asks for a larger window if the parked ones have nearly used up
// what was asked for. The caller holds mu.
func (r *dispatcher) noteParked() {
	if g := r.sub.gen; g != nil && !r.resizeDue && r.sched.Beside()+r.window()*5/4 > g.asked {
		r.resizeDue = true
		r.wake()
	}
}

// resize tells the transport how much is held, if that has changed. Growing is
// urgent; shrinking waits for its time.
func (r *engine) resize(g *generation, now time.Time) {
	r.mu.Lock()
	r.resizeDue = false
	want := r.wantedWindow()
	late := now.Sub(r.tick.resizedAt) < resizeEvery
	if want == g.asked || want < g.asked && late {
		r.mu.Unlock()
		return
	}
	before := g.asked
	g.asked = want
	r.mu.Unlock()
	z, ok := g.c.(transport.Resizer)
	if !ok {
		return
	}
	r.tick.resizedAt = now
	if err := r.callBriefly(func(ctx context.Context) error { return z.Resize(ctx, want) }); err != nil {
		r.mu.Lock()
		g.asked = before
		r.mu.Unlock()
		if !r.life.stopping() {
			r.notice(err, "resizing the broker's window failed; tried again")
		}
	}
}

// readBacklog asks the broker now and then how much waits.
func (r *engine) readBacklog(g *generation) {
	b, ok := g.c.(transport.Backlogger)
	now := r.now()
	every := backlogEvery
	if r.tick.askedAt.Before(r.tick.hotSince) { // how much there is matters now
		every = backlogSoon
	}
	if !ok || now.Sub(r.tick.askedAt) < every {
		return
	}
	r.tick.askedAt = now
	_ = r.callBriefly(func(ctx context.Context) error { // the age of the last reading tells of a failure
		n, at, err := b.Backlog(ctx)
		if err == nil {
			r.mu.Lock()
			r.tick.backlog, r.tick.backlogAt = n, at
			r.mu.Unlock()
		}
		return err
	})
}

// hotLane tells, at most once a minute, when one lane fills half of the window:
// more workers would not help then. The caller holds mu.
func (r *engine) hotLane(now time.Time) {
	if !r.s.ordered || now.Sub(r.laneTold) < repeatEvery {
		return
	}
	hot, ok := r.sched.Longest(false)
	n, window := hot.Waiting+1, r.window()
	if ok && n >= minLookahead && 2*n >= window {
		r.laneTold = now
		r.emit(Event{Kind: EventLaneFull, Count: n, Reason: r.laneName(hot.Key),
			Text: fmt.Sprintf("key %q holds %d of %d places: its share of the load limits the whole to 1/(share × handler time)",
				r.laneName(hot.Key), n, window)})
	}
}

// Idle reports whether nothing is queued at the broker as far as it tells, in the
// transport, or here: waiting, running or parked. For tests and tools.
func (c *ListenerContainer) Idle(ctx context.Context) (bool, error) {
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	if r == nil {
		return false, nil
	}
	r.mu.Lock()
	g := r.sub.gen
	held := r.sched.Total().N
	away := r.delayed.until.After(r.now())
	r.mu.Unlock()
	if g == nil || held > 0 || away {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sub.gen == g && r.sched.Total().N == 0, nil
}
