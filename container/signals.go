package container

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// signals is how the goroutines of a run wait for each other: the supervisor waits for work,
// the steps of a stop wait for something to end.
type signals struct {
	clock longshore.Clock // the container's
	lock  *sync.Mutex     // of the guard: what is waited for changes under it

	kick  chan struct{} // wakes the supervisor; has room for one
	nudge chan struct{} // closed and replaced when something ends; guarded by lock
}

func newSignals(clock longshore.Clock, mu *sync.Mutex) *signals {
	return &signals{clock, mu, make(chan struct{}, 1), make(chan struct{})}
}

// wake lets the supervisor look at everything again.
func (s *signals) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// happened makes the steps of a stop look again.
func (s *signals) happened() {
	close(s.nudge)
	s.nudge = make(chan struct{})
}

// awaitChange waits for a change; false when end is reached.
func (s *signals) awaitChange(nudge <-chan struct{}, end time.Time) bool {
	left := end.Sub(s.clock.Now())
	if left <= 0 {
		return false
	}
	timeout, stop := after(s.clock, left)
	defer stop()
	select {
	case <-nudge:
		return true
	case <-s.kick: // the deadline may have moved
		return true
	case <-timeout:
		return false
	}
}

// waitFor waits for a condition until end; both are evaluated under the lock.
func (s *signals) waitFor(end func() time.Time, cond func() bool) {
	for {
		s.lock.Lock()
		ok, nudge, limit := cond(), s.nudge, end()
		s.lock.Unlock()
		if ok || !s.awaitChange(nudge, limit) {
			return
		}
	}
}
