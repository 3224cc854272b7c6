package container

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// situation is everything a container is judged by, read at one moment: values only, so
// that a judgement is a pure function of it and a test can state any of them. Its Stats
// have every number, and nothing yet of what [situation.diagnose] derives.
type situation struct {
	Stats // the numbers

	now        time.Time // when it was read
	address    string    // of the broker
	deadLetter string    // where dead letters go; "": nowhere of ours

	// What it may do. Without a run the axes say nothing.
	begun      bool       // there was a run
	axes       state.Axes // what the run may do
	keepsPlace bool       // the consumer stays subscribed while a middleware holds the intake
	worksOff   bool       // it has no subscription and works off what a hold left here
	doubts     bool       // a middleware lets single deliveries through, to try whether it may open
	lastErr    error      // why there is no subscription, or why the start failed

	// Who intervened, and since when things are as they are. A zero time is not known.
	paused    longshore.Intervention
	throttled longshore.Intervention // who set the limits in force; zero: not known
	heldAt    time.Time              // a middleware has held the intake since
	downAt    time.Time              // there has been no subscription since

	// What goes on inside.
	partitions  int         // of this instance; −1: the source has none, or they are not known
	declared    bool        // the source may be new, so a wrong name is not noticed
	places      int         // how many workers there are to be
	calls       callsSeen   // what the workers do
	parkingFull bool        // retries take all the space for them
	parkingAt   time.Time   // since when
	unmovable   string      // what the dead-letter destination refuses for good, and why; "": nothing
	hotKey      string      // of the lane that holds HotShare; "" if it has no readable name
	aside       float64     // the share of the space for blocked deliveries that is used
	blockedLane BlockedLane // where the most of what is aside waits; read only if its space is used up
	alarm       bool        // the broker blocks publishers
	alarmAt     time.Time   // since when
	slowAt      time.Time   // handlers have taken several times as long as before since
	failing     Failing     // what most calls fail of; zero: most succeed
	loops       Loops       // messages that are released again and again
}

// situation reads the container. The transport and the gate are asked without the lock.
func (c *ListenerContainer) situation() situation {
	c.mu.Lock()
	r := c.cur
	s := situation{Stats: Stats{Name: c.set.name, Transport: c.set.about.Transport, Source: c.set.about.Name,
		Min: c.workers.Min, Max: c.workers.Max, Permits: -1, Rate: -1},
		now: c.set.clock.Now(), address: c.set.about.Address, deadLetter: c.set.dead.To, paused: c.pausedBy, partitions: -1}
	c.mu.Unlock()
	if r == nil {
		return s
	}
	s.begun, s.doubts, s.now = true, c.hooks.doubts(), r.now()
	if gate := c.set.gate; gate != nil {
		s.Permits, s.Rate = gate.Limits()
		if g, ok := gate.(longshore.Intervened); ok {
			s.throttled, _ = g.Intervention()
		}
	}
	var g *generation
	r.locked(func() { g = r.situationLocked(&s) })
	if g == nil || s.axes.Sub != state.Open || s.axes.Stop >= state.Closing {
		return s
	}
	if a, ok := g.c.(transport.Partitioner); ok {
		s.partitions = a.Partitions()
	}
	if h, ok := g.c.(transport.HeadReporter); ok {
		s.BlockedPartitions = mostBlocked(h.BlockedPartitions())
		for _, p := range s.BlockedPartitions {
			s.Oldest = max(s.Oldest, s.now.Sub(p.Since))
		}
	}
	return s
}

// situationLocked adds what the run knows and returns its subscription.
func (r *engine) situationLocked(s *situation) *generation {
	g := r.sub.gen
	r.stats(&s.Stats, s.now)
	s.axes, s.worksOff, s.lastErr, s.downAt = r.axes.Axes, r.hand.provided(), r.sub.lastErr, r.sub.downAt
	if r.axes.Holds.Has(state.Middleware) {
		s.HeldBy, s.heldAt = r.holds.held.text(), r.holds.held.since
	}
	if g == nil && r.axes.WantsSubscription(r.sub.opensPaused) && !r.sub.due(s.now) {
		s.NextAttempt = r.sub.notUntil
	}
	if g != nil {
		s.keepsPlace, s.downAt = g.caps.KeepsPlace, time.Time{}
	}
	v := &r.count.vitals
	s.places, s.declared, s.alarm = r.hand.pool.places(), v.declared, r.sub.blocked
	s.parkingFull, s.parkingAt, s.alarmAt, s.slowAt = r.held.parking.full, v.since[condParking], v.since[condAlarm], v.since[condSlow]
	s.failing, s.loops = v.failing(s.now), r.settler.loops.worst(s.now)
	if s.DeadLetterFailures > 0 { // rarely: it walks over all that is parked
		s.unmovable = unmovableText(r.held.sched, r.s.dead.To)
	}
	s.calls = r.inventory().calls(s.now, v.calls.calls().Overdue(), g != nil && g.caps.Partitions)
	s.Busy, s.Stuck = s.calls.running, s.calls.stuck
	if s.HotShare >= hotShare && !r.s.byPartition {
		s.hotKey = hottestKey(r.held.sched, r.s)
	}
	if s.aside = r.held.sched.AsideShare(); s.aside >= 1 {
		s.blockedLane = blockedLane(r.held.sched, r.s)
	}
	return g
}

// lastText is the last error without its hint, which the sentence has at its end.
func (s *situation) lastText() (text, hint string) {
	if s.lastErr == nil {
		return "not subscribed", ""
	}
	var e *longshore.Error
	if errors.As(s.lastErr, &e) {
		return fmt.Sprintf("%s (%s)", e.Text(), e.Code), e.Hint
	}
	return s.lastErr.Error(), ""
}

// stats fills in the numbers.
func (r *engine) stats(st *Stats, now time.Time) {
	st.Since, st.Standby = r.began, r.sub.standby
	st.Workers, st.Target, st.Min, st.Max = r.hand.pool.live, r.hand.pool.target, r.hand.pool.min, r.hand.pool.max
	st.Scaling = r.load.scaling
	st.Scaling.Reasons = maps.Clone(st.Scaling.Reasons)
	q := r.held.sched
	st.InFlight, st.ReadyToStart, st.Queued = q.InWindow(), q.Ready(), q.Behind(dispatch.Open).N
	st.Parked, st.Blocked = q.Retries().N+q.Behind(dispatch.Waiting).N, q.Behind(dispatch.Hung).N+q.Behind(dispatch.Lost).N
	st.Window, st.Lanes, st.Bytes = r.hand.window(), q.Lanes(), q.Total().Bytes
	st.Generation, st.Capacity, st.Buffered = r.sub.gens, r.load.calls.capacity, r.load.backlog.buffered
	st.Backlog, st.BacklogAt, st.LastDelivery = r.load.backlog.n, r.load.backlog.at, r.count.last
	if r.sub.gen != nil {
		st.Subscribed, st.ConsumerTag = r.sub.gen.since, r.sub.gen.tag
	}
	st.ConsumerCapacity = r.load.capacity.shareOf(r.sub.gen, r.scaler.mayTake())
	c := &r.count
	st.Received, st.Redelivered, st.Lost = c.received, c.redelivered, c.lost
	st.Acked, st.Retried, st.Rejected = c.verdicts[longshore.VerdictAck], c.verdicts[longshore.VerdictRetry], c.verdicts[longshore.VerdictReject]
	st.Discarded, st.Released, st.VerdictLost = c.verdicts[longshore.VerdictDiscard], c.verdicts[longshore.VerdictRelease], c.verdicts[longshore.VerdictLost]
	rare := r.log.counts()
	st.DeadLetters, st.SettleFailures, st.Reopens = rare.dead, rare.settle, rare.reopens
	st.Skipped, st.ReleasedBy, st.DeadLetterFailures = rare.skipped, rare.released, rare.deadFailed
	st.FailedBy, st.Handler = clone(c.vitals.failed), c.vitals.calls.calls()
	st.StuckTotal = c.stuck
	if it := r.held.sched.Oldest(); it != nil {
		st.Oldest = now.Sub(time.Unix(0, it.received))
	}
	st.HotShare = r.hotShare()
}

// hotShare is the part of the window that its longest lane takes, with its first item.
func (r *engine) hotShare() float64 {
	if r.held.sched.Lanes() == 0 {
		return 0
	}
	n := r.held.sched.LongestWait() + 1
	return float64(n) / float64(max(r.hand.window(), n))
}
