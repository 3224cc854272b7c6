package container

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// situation is everything a container is judged by, read at one moment: values only, so
// that a judgement is a pure function of it and a test can state any of them. Its Stats
// have every number, and nothing yet of what [situation.diagnose] derives.
type situation struct {
	Stats

	now        time.Time
	address    string // of the broker
	deadLetter string // where dead letters go; "": nowhere of ours

	// What it may do. Without a run the axes say nothing.
	begun      bool // there was a run
	axes       state.Axes
	keepsPlace bool  // the consumer stays subscribed while a middleware holds the intake
	worksOff   bool  // it has no subscription and works off what a hold left here
	doubts     bool  // a middleware lets single deliveries through, to try whether it may open
	lastErr    error // why there is no subscription, or why the start failed

	// Who intervened, and since when things are as they are. A zero time is not known.
	paused    longshore.Intervention
	throttled longshore.Intervention
	heldAt    time.Time // a middleware has held the intake since
	downAt    time.Time // there has been no subscription since

	// What goes on inside.
	partitions  int // of this instance; −1: the source has none, or they are not known
	declared    bool
	places      int // how many workers there are to be
	calls       callsSeen
	parkingFull bool
	parkingAt   time.Time
	unmovable   string // what the dead-letter place refuses for good, and why; "": nothing
	hotKey      string // of the lane that holds HotShare; "" if it has no readable name
	aside       float64
	blockedLane BlockedLane // where the most of what is aside waits; read only if its space is used up
	alarm       bool        // the broker blocks publishers
	alarmAt     time.Time
	slowAt      time.Time // handlers have taken several times as long as before since
	failing     Failing
	loops       Loops
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
	s.begun, s.doubts, s.now = true, c.doubted(), r.now()
	if gate := c.set.gate; gate != nil {
		s.Permits, s.Rate = gate.Limits()
		if g, ok := gate.(longshore.Intervened); ok {
			s.throttled, _ = g.Intervention()
		}
	}
	g := r.situation(&s)
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

// situation adds what the run knows and returns its subscription.
func (r *engine) situation(s *situation) *generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.sub.gen
	r.stats(&s.Stats, s.now)
	s.axes, s.worksOff, s.lastErr, s.downAt = r.axes, r.provided(), r.sub.lastErr, r.sub.downAt
	if r.axes.Holds.Has(state.Middleware) {
		s.HeldBy, s.heldAt = r.held.text(), r.held.since
	}
	if g != nil {
		s.keepsPlace, s.downAt = g.caps.KeepsPlace, time.Time{}
	}
	v := &r.count.vitals
	s.places, s.declared, s.alarm = r.pool.places(), v.declared, r.blocked
	s.parkingFull, s.parkingAt, s.alarmAt, s.slowAt = r.parking.full, v.since[condParking], v.since[condAlarm], v.since[condSlow]
	s.failing, s.loops = v.failing(s.now), r.settler.loops.worst(s.now)
	if s.DeadLetterFailures > 0 { // rarely: it walks over all that is parked
		s.unmovable = unmovableText(r.sched, r.s.dead.To)
	}
	s.calls = r.callsSeen(s.now)
	s.Busy, s.Stuck = s.calls.running, s.calls.stuck
	if s.HotShare >= hotShare && !r.s.byPartition {
		s.hotKey = hottestKey(r.sched, r.s)
	}
	if s.aside = r.sched.AsideShare(); s.aside >= 1 {
		s.blockedLane = blockedLane(r.sched, r.s)
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
