package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/internal/keytext"
)

// A lane whose first delivery does not get on must hold no other lane up. The Scheduler
// leaves the places to the others. Here it is told of calls that hang, each of them gets a
// worker that stands in for it, and it is reported how much waits behind them.

const (
	// hungMin is the shortest age from which on a call counts as one that hangs.
	hungMin = time.Second
	// hungTimes is by how much it must have outlived an average call. Less would take a
	// slow downstream for one that hangs; the Scheduler sees sooner, by its own count, when
	// one lane falls behind the others.
	hungTimes = 10
)

// standIns are the workers that stand in for calls that hang; guarded by engine.mu. Without
// them one such call would take the only worker of a quiet container, and no policy grows
// by a call that does not end: a hang is not demand.
type standIns struct {
	n     int // at most as many as Workers.Max leaves room for
	ended int // calls that have ended since the last one came
}

// add says whether one more worker may stand in. The first one may at once; the next only
// after something has ended: where everything hangs, more calls would hang too.
func (s *standIns) add() bool {
	if s.n > 0 && s.ended == 0 {
		return false
	}
	s.n, s.ended = s.n+1, 0
	return true
}

// hungAfter is the age from which on a call counts as one that hangs. As long as none has
// ended, nothing is known of how long calls take. The caller holds mu.
func (r *engine) hungAfter() time.Duration {
	if r.tick.latency == 0 {
		return oldCall
	}
	return max(hungMin, time.Duration(hungTimes*r.tick.latency*float64(time.Second)))
}

// lookForHung tells the Scheduler of calls that hang and lets workers stand in for them.
// The caller holds mu.
func (r *engine) lookForHung(now time.Time) {
	limit, more := r.hungAfter(), false
	r.pool.standIns.ended += r.count.completed
	for _, w := range r.pool.workers {
		started := w.busy.Load()
		if started == 0 || now.Sub(time.Unix(0, started)) < limit {
			continue
		}
		if w.it != nil && r.manual == nil {
			r.sched.Hung(&w.it.Item)
		}
		for _, it := range w.batch {
			r.sched.Hung(&it.Item)
		}
		if !w.hung && !w.extra && r.workWaits() && r.pool.standIns.add() {
			w.hung, more = true, true
		}
	}
	for _, it := range r.manual { // its handler may have returned long ago
		if !it.started.IsZero() && now.Sub(it.started) >= limit {
			r.sched.Hung(&it.Item)
		}
	}
	if more {
		r.setTarget(r.pool.target)
	}
	r.wakeOne() // a lane that was set aside has made room, and every worker may be idle
}

// workWaits says whether a worker that stands in would have something to do: a long call
// alone needs none. Where the backlog is not known there may be some. The caller holds mu.
func (r *engine) workWaits() bool {
	return r.sched.Ready() > 0 || r.tick.buffered > 0 || r.tick.backlogAt.IsZero() || r.tick.backlog > 0
}

// unhung ends a call that had a stand-in. The caller holds mu.
func (r *dispatcher) unhung(w *worker) {
	w.hung = false
	r.pool.standIns.n--
}

// asideWatch reports how much of its space is used by what waits in lanes that stand; only
// the supervisor's tick uses it.
type asideWatch struct{ level int }

// asideSpace is how many deliveries that wait behind a blocked one take no place from the
// others. The broker may leave us fewer than we have room for. The caller holds mu.
func (r *dispatcher) asideSpace(caps longshore.Capabilities) int {
	if caps.MostHeld == 0 {
		return asideMost
	}
	return min(asideMost, max(caps.MostHeld-r.s.window(r.pool.max), caps.MostHeld/2, 1))
}

// asideLevels are the shares, in percent, at which it is told.
//
//nolint:gochecknoglobals // a constant table
var asideLevels = [...]int{10, 50, 90, 100}

// rise says which share has been reached that was not before; 0: none. It is told again
// after it has fallen to half of it.
func (a *asideWatch) rise(share float64) (percent int) {
	for a.level > 0 && share*200 < float64(asideLevels[a.level-1]) {
		a.level--
	}
	for a.level < len(asideLevels) && share*100 >= float64(asideLevels[a.level]) {
		percent = asideLevels[a.level]
		a.level++
	}
	return percent
}

// watchAside tells when what waits in lanes that stand reaches a share of its space. The
// caller holds mu.
func (r *engine) watchAside() {
	percent := r.aside.rise(r.sched.AsideShare())
	if percent == 0 {
		return
	}
	b := r.blockedLane()
	e := Event{Kind: EventLaneBlocked, Count: r.sched.Aside().N, Reason: b.Key,
		Text: fmt.Sprintf("%d deliveries wait behind blocked ones, %d %% of what may: %s", r.sched.Aside().N, percent, b)}
	if percent == 100 {
		e.Text += "; what comes now takes places from the others"
	}
	r.emit(e)
}

// BlockedLane is a lane of which the first delivery does not get on.
type BlockedLane struct {
	Key     string // cut at 64 bytes; of an order by partition its topic and number
	By      string // "hung", "lost" (taken back while its handler runs) or "waiting" (for a retry)
	Waiting int    // behind the first one
}

// String says it in a few words.
func (b BlockedLane) String() string {
	why := map[string]string{
		dispatch.Hung.String():    "whose handler does not return",
		dispatch.Lost.String():    "which was taken back by the broker, and its handler does not return",
		dispatch.Waiting.String(): "which waits for its next attempt",
	}[b.By]
	return fmt.Sprintf("%d of them behind one of %q, %s", b.Waiting, b.Key, why)
}

// blockedLane is the one in which the most wait. The caller holds mu.
func (r *engine) blockedLane() (b BlockedLane) {
	if l, ok := r.sched.Longest(true); ok {
		b = BlockedLane{Key: r.laneName(l.Key), By: l.Standing.String(), Waiting: l.Waiting}
	}
	return b
}

// hottestKey is the name of the lane in which the most wait. The caller holds mu.
func (r *engine) hottestKey() string {
	for _, blocked := range []bool{false, true} {
		if hot, ok := r.sched.Longest(blocked); ok && hot.Waiting == r.sched.LongestWait() {
			return r.laneName(hot.Key)
		}
	}
	return ""
}

// laneName makes a lane's key readable.
func (r *engine) laneName(key []byte) string {
	if r.s.byPartition && len(key) >= 4 {
		topic, p := key[:len(key)-4], key[len(key)-4:]
		return fmt.Sprintf("%s/%d", cutText(string(topic), 64), int32(p[0])<<24|int32(p[1])<<16|int32(p[2])<<8|int32(p[3]))
	}
	return cutText(keytext.Of(key), 64)
}
