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
// delivery. Guarded by dispatcher.mu.
type linger struct {
	state lingerState
	timer longshore.Timer // ends it
}

// arm begins the time, unless it runs or is over.
func (l *linger) arm(clock longshore.Clock, d time.Duration, over func()) {
	if l.state == lingerNone {
		l.state = lingerArmed
		l.timer = clock.AfterFunc(d, over)
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

// batchReady says whether a batch should be taken now: it is full, its time is over, or
// waiting would bring nothing more. Something is ready.
func (r *dispatcher) batchReady() bool {
	return r.sched.Ready() >= r.s.batch || r.linger.state == lingerOver || r.s.linger == 0 || r.axes.Stopping() ||
		r.sched.Front().Of.alone() || r.free() <= 0
}

// alone says that the item cannot share a batch.
func (it *item) alone() bool { return it.solo || it.fail != nil }

// armBatch lets the time of a batch begin with its first delivery.
func (r *dispatcher) armBatch() {
	if r.s.batch > 0 && r.s.linger > 0 && r.sched.Ready() > 0 {
		r.linger.arm(r.s.clock, r.s.linger, r.batchOver)
	}
}

// batchOver lets a worker take a batch that did not fill in its time.
func (r *dispatcher) batchOver() {
	r.mu.Lock()
	r.linger.end(r.sched.Ready() > 0 && !r.gate.shut)
	r.wakeOne()
	r.mu.Unlock()
}
