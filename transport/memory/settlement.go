package memory

import (
	"time"

	"github.com/longshore-go/longshore"
)

// settlements are the verdicts that a consumer has accepted and the broker has not
// carried out yet, as on a real broker, where they travel in batches. The broker's lock
// guards them.
type settlements struct {
	accepted []uint32        // slots, in the order of their verdicts
	timer    longshore.Timer // carries them out when the linger is over; nil: not running
	failed   int             // not carried out since the last Flush, which reports them
}

// add notes a verdict.
func (s *settlements) add(idx uint32) { s.accepted = append(s.accepted, idx) }

// later runs f after a time, unless it is about to run already.
func (s *settlements) later(clock longshore.Clock, d time.Duration, f func()) {
	if s.timer == nil {
		s.timer = clock.AfterFunc(d, f)
	}
}

// stop ends the timer.
func (s *settlements) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// take returns what was accepted, oldest first.
func (s *settlements) take() []uint32 {
	all := s.accepted
	s.accepted = nil
	return all
}

// takeFailed returns how many failed since the last call.
func (s *settlements) takeFailed() int {
	n := s.failed
	s.failed = 0
	return n
}
