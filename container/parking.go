package container

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// parking is the timer for what is parked, and whether its space is used up. Guarded by
// guard.mu.
type parking struct {
	clock longshore.Clock // the container's, so that tests decide about time
	wake  func()          // called, without the lock, when the first one is due

	full  bool            // the space was reported as used up, and is not free again to a tenth
	timer longshore.Timer // until the first one is due; nil: none is armed
	due   time.Time       // when it fires
}

// note follows how full the space is, and returns the kind of the event to emit when it
// fills up and when there is room again; "": none.
func (p *parking) note(full bool, n, limit int) (report EventKind) {
	was := p.full
	if full || n < limit*9/10 {
		p.full = full
	}
	switch {
	case p.full == was:
		return ""
	case p.full:
		return EventParkingFull
	}
	return EventParkingFree
}

// follow sets the timer to the time at which the first one is due.
func (p *parking) follow(sched *dispatch.Scheduler[item]) {
	due, ok := sched.NextDue()
	if !ok {
		return
	}
	if p.timer != nil {
		if !due.Before(p.due) {
			return
		}
		p.timer.Stop()
	}
	p.due = due
	p.timer = p.clock.AfterFunc(max(due.Sub(p.clock.Now()), 0), p.wake)
}
