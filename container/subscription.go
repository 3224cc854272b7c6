package container

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
)

// steady is how long a subscription must last before the pauses between attempts start
// from the shortest again: one that ends at once must not be reopened in a hot loop.
const steady = 10 * time.Second

// subscription is the consumers of a run, and when to open the next one. Pure but for
// its timer, which only wakes the supervisor. Guarded by guard.mu.
type subscription struct {
	clock       longshore.Clock // the container's, so that tests decide about time
	wake        func()          // the supervisor, when it may open again
	reopen      backoff.Policy  // Config.Reopen: the pauses between attempts
	opensPaused bool            // the source can be opened without taking anything, so a hold need not keep it closed

	gen  *generation   // the one in use; nil: not subscribed
	old  []*generation // cancelled, with deliveries still out: they are settled there
	gens int           // how many there were, for Stats and events

	tries    int             // attempts in a row that failed, or did not last
	notUntil time.Time       // no attempt is made before
	timer    longshore.Timer // ends that pause
	lastErr  error           // why there is none, for health and Start
	downAt   time.Time       // of the last loss; before the first subscription, of the start
	standby  bool            // another consumer is the active one
	blocked  bool            // the broker blocks publishers
}

// due says whether the pause between attempts is over.
func (s *subscription) due(now time.Time) bool { return !now.Before(s.notUntil) }

// opened puts a new generation into use.
func (s *subscription) opened(g *generation) {
	s.gen, s.gens, s.lastErr = g, g.id, nil
}

// failed notes an attempt that failed and returns the pause before the next one.
func (s *subscription) failed(now time.Time, err error, rnd float64) time.Duration {
	s.tries++
	delay := s.reopen.Delay(s.tries, rnd)
	s.notUntil, s.lastErr = now.Add(delay), err
	return delay
}

// lost takes a generation that is down out of use and returns the pause before the next
// attempt.
func (s *subscription) lost(now time.Time, g *generation, rnd float64) time.Duration {
	s.gen, s.standby, s.blocked, s.downAt = nil, false, false, now
	if now.Sub(g.since) >= steady {
		s.tries = 0
	}
	return s.failed(now, g.err, rnd)
}

// leave takes a generation out of use that is cancelled; it stays among the old ones
// until its last delivery is settled.
func (s *subscription) leave() {
	s.old = append(s.old, s.gen)
	s.gen, s.standby = nil, false
}

// held says that a hold is over for which the container was not subscribed: no pause
// follows what we wanted ourselves.
func (s *subscription) returns(now time.Time) { s.notUntil, s.downAt = time.Time{}, now }

// settled returns an old generation that can be closed: nothing of it is out, or it is
// down; nil: none.
func (s *subscription) settled() *generation {
	for _, g := range s.old {
		if g.Held() == 0 || g.isDown() {
			return g
		}
	}
	return nil
}

// forget drops an old generation, which is being closed.
func (s *subscription) forget(g *generation) {
	for i, o := range s.old {
		if o == g {
			s.old = append(s.old[:i], s.old[i+1:]...)
			return
		}
	}
}

// all are the generations that are not closed yet, the newest last.
func (s *subscription) all() []*generation {
	gens := append([]*generation{}, s.old...)
	if s.gen != nil {
		gens = append(gens, s.gen)
	}
	return gens
}

// arm wakes the supervisor after the pause.
func (s *subscription) arm(delay time.Duration) { s.timer = s.clock.AfterFunc(delay, s.wake) }
