package container

import (
	"time"

	"github.com/longshore-go/longshore"
)

// lingerState is how a batch waits to fill.
type lingerState uint8

const (
	lingerNone  lingerState = iota // nothing is ready, or its time has not begun
	lingerArmed                    // the time of the first one runs
	lingerOver                     // the batch is taken as it is
)

// linger is the time for which a batch waits to fill. It begins with the batch's first
// delivery. Guarded by guard.mu.
type linger struct {
	clock longshore.Clock // the container's, so that tests decide about time
	wait  time.Duration   // Config.Batch.Linger; 0: batches do not wait, or there are none
	wake  func()          // called, without the lock, when the time is over

	state lingerState     // so that the time begins once for each batch
	timer longshore.Timer // ends the time; nil: it never began
}

// follow begins the time when something is ready, unless the time runs or is over.
func (l *linger) follow(ready int) {
	if l.wait > 0 && ready > 0 && l.state == lingerNone {
		l.state = lingerArmed
		l.timer = l.clock.AfterFunc(l.wait, l.wake)
	}
}

// end notes that the time is over; ready says whether there is still something to take.
func (l *linger) end(ready bool) {
	l.state = lingerNone
	if ready {
		l.state = lingerOver
	}
}

// refused lets the time begin again when the batch may start: until then more can come.
func (l *linger) refused() {
	if l.state == lingerOver {
		l.state = lingerNone
	}
}

// stop ends the time of a batch that was taken.
func (l *linger) stop() {
	if l.state == lingerArmed {
		l.timer.Stop()
	}
	l.state = lingerNone
}

// alone says that the item cannot share a batch.
func (it *item) alone() bool { return it.solo || it.fail != nil }
