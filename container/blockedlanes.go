package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/internal/keytext"
)

// A lane whose first delivery makes no progress must not hold up other lanes. The Scheduler
// gives its places to them. This file reports calls that hang to the Scheduler, gives each
// of them a worker that stands in for it, and reports how much waits behind them.

const (
	// hungMin is the shortest age from which on a call counts as one that hangs.
	hungMin = time.Second
	// hungTimes is by how much it must have outlived an average call. Less would take a
	// slow downstream for one that hangs; the Scheduler sees sooner, by its own count, when
	// one lane falls behind the others.
	hungTimes = 10
)

// standIns are the workers that stand in for calls that hang. Guarded by guard.mu. Without
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

// monitor looks, at each tick, for calls and lanes without progress: hung calls get a
// stand-in and their lanes an account of their own, stuck calls are reported with their
// stack. Guarded by guard.mu.
type monitor struct {
	common
	hand  *handout      // who gives a stand-in its place
	pool  *pool         // whose calls it looks at
	held  *stock        // whose lanes it looks at
	sub   *subscription // whether the broker blocks publishers
	load  *load         // how long a call usually takes
	count *counters     // what the handlers' condition is noted in

	aside   asideWatch // how full the space beside the window is
	hotTold time.Time  // when a lane that fills half of the window was reported last
}

// lookLocked finds what has made no progress since the last tick, and reports it.
func (m *monitor) lookLocked(now time.Time) {
	m.lookForHung(now)
	full := m.held.parkingFull() || m.held.parking.full
	m.count.vitals.look(now, full, m.sub.blocked)
	m.reportHotLane(now)
	m.reportAside()
}

// lookForHung reports calls that hang to the Scheduler and lets workers stand in for them.
func (m *monitor) lookForHung(now time.Time) {
	limit, more := m.load.calls.hungAfter(), false
	m.pool.standIns.ended += m.load.calls.completed
	for _, w := range m.pool.workers {
		if w.runs(now) < limit {
			continue
		}
		if w.it != nil && m.held.manual == nil {
			m.held.sched.Hung(&w.it.Item)
		}
		for _, it := range w.batch {
			m.held.sched.Hung(&it.Item)
		}
		// A long call alone needs no stand-in: it would have nothing to do.
		if waits := m.held.sched.Ready() > 0 || m.load.backlog.waits(); waits && !w.hung && !w.extra && m.pool.standIns.add() {
			w.hung, more = true, true
		}
	}
	for _, it := range m.held.manual { // its handler may have returned long ago
		if !it.started.IsZero() && now.Sub(it.started) >= limit {
			m.held.sched.Hung(&it.Item)
		}
	}
	if more {
		m.hand.setTarget(m.pool.target)
	}
	m.hand.wakeOne() // a lane that was set aside has made room, and every worker may be idle
}

// unhung ends a call that had a stand-in.
func (p *pool) unhung(w *worker) {
	w.hung = false
	p.standIns.n--
}

// asideWatch reports how much of its space is used by what waits in lanes that stand; only
// the supervisor's tick uses it.
type asideWatch struct {
	level int // how many of asideLevels have been reported
}

// asideSpace is how many deliveries that wait behind a blocked one take no place from the
// others. The broker may leave us fewer than there is room for.
func asideSpace(caps longshore.Capabilities, window int) int {
	if caps.MostHeld == 0 {
		return asideMost
	}
	return min(asideMost, max(caps.MostHeld-window, caps.MostHeld/2, 1))
}

// asideLevels are the shares, in percent, at which an event is emitted.
//
//nolint:gochecknoglobals // a constant table
var asideLevels = [...]int{10, 50, 90, 100}

// rise returns the share that has been reached and was not reached before; 0: none. A share
// is reported again after the use has fallen to half of it.
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

// reportAside emits an event when what waits in blocked lanes reaches a share of its space.
func (m *monitor) reportAside() {
	before := m.aside.level
	percent := m.aside.rise(m.held.sched.AsideShare())
	if before > 0 && m.aside.level == 0 {
		n := m.held.sched.Aside().N
		m.emit(Event{Kind: EventLanesFree, Count: n, Text: fmt.Sprintf("%d deliveries wait behind blocked ones", n)})
	}
	if percent == 0 {
		return
	}
	b := blockedLane(m.held.sched, m.s)
	e := Event{Kind: EventLaneBlocked, Count: m.held.sched.Aside().N, Reason: b.Key,
		Text: fmt.Sprintf("%d deliveries wait behind blocked ones, %d %% of what may: %s", m.held.sched.Aside().N, percent, b)}
	if percent == 100 {
		e.Text += "; what comes now takes places from the others"
	}
	m.emit(e)
}

// reportHotLane emits an event, at most once a minute, when one lane fills half of the
// window: more workers would not help then.
func (m *monitor) reportHotLane(now time.Time) {
	if !m.s.ordered || now.Sub(m.hotTold) < repeatEvery {
		return
	}
	hot, ok := m.held.sched.Longest(false)
	n, window := hot.Waiting+1, m.hand.window()
	if ok && n >= minLookahead && 2*n >= window {
		m.hotTold = now
		name := m.s.laneName(hot.Key)
		m.emit(Event{Kind: EventLaneFull, Count: n, Reason: name,
			Text: fmt.Sprintf("key %q holds %d of %d places: its share of the load limits the whole to 1/(share × handler time)", name, n, window)})
	}
}

// BlockedLane is a lane whose first delivery makes no progress.
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

// blockedLane is the one in which the most wait.
func blockedLane(sched *dispatch.Scheduler[item], s *settings) (b BlockedLane) {
	if l, ok := sched.Longest(true); ok {
		b = BlockedLane{Key: s.laneName(l.Key), By: l.Standing.String(), Waiting: l.Waiting}
	}
	return b
}

// hottestKey is the name of the lane in which the most wait.
func hottestKey(sched *dispatch.Scheduler[item], s *settings) string {
	for _, blocked := range []bool{false, true} {
		if hot, ok := sched.Longest(blocked); ok && hot.Waiting == sched.LongestWait() {
			return s.laneName(hot.Key)
		}
	}
	return ""
}

// laneName makes a lane's key readable.
func (s *settings) laneName(key []byte) string {
	if s.byPartition && len(key) >= 4 {
		topic, p := key[:len(key)-4], key[len(key)-4:]
		return fmt.Sprintf("%s/%d", cutText(string(topic), 64), int32(p[0])<<24|int32(p[1])<<16|int32(p[2])<<8|int32(p[3]))
	}
	return cutText(keytext.Of(key), 64)
}
