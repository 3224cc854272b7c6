package container

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
)

// lifetimes are the contexts and deadlines of a run: some end when a stop begins, others
// when its last steps must be over. The contexts never change; guard.mu guards the
// deadlines.
type lifetimes struct {
	clock longshore.Clock // the container's, so that tests decide about time

	open   context.Context //nolint:containedctx // of calls that a stop may cut short; lives and ends with its struct, not with a call
	base   context.Context //nolint:containedctx // of handlers: ends with ErrStopping when their time is over
	settle context.Context //nolint:containedctx // of settlements: ends a little before everything does, for flushing and closing need time too
	hard   context.Context //nolint:containedctx // of flushing and closing: ends when the stop must be over

	endOpen, endSettle, endHard context.CancelFunc      // end the contexts of these names
	endBase                     context.CancelCauseFunc // ends base, with its cause

	deadlines                              // which the stop sets
	settleTimer, hardTimer longshore.Timer // end settle and hard at the deadlines
}

func newLifetimes(clock longshore.Clock, grace time.Duration) *lifetimes {
	l := &lifetimes{clock: clock, deadlines: deadlines{grace: grace}}
	l.base, l.endBase = context.WithCancelCause(context.Background())
	l.settle, l.endSettle = context.WithCancel(context.Background())
	l.hard, l.endHard = context.WithCancel(context.Background())
	l.open, l.endOpen = context.WithCancel(context.Background())
	return l
}

// beginStop sets the deadlines of a stop; a later call can only make them earlier.
func (l *lifetimes) beginStop(soft, hard time.Time) {
	l.begin(l.clock.Now(), soft, hard)
	l.endOpen()
	l.arm()
}

// cutHandlers ends the contexts of the handlers that still run; running says how many.
func (l *lifetimes) cutHandlers(running int) {
	l.endBase(longshore.ErrStopping)
	l.cutOff(l.clock.Now(), running)
	l.arm()
}

// arm sets the timers to the deadlines.
func (l *lifetimes) arm() {
	l.stopTimers()
	now := l.clock.Now()
	l.hardTimer = l.clock.AfterFunc(l.left(now), l.endHard)
	l.settleTimer = l.clock.AfterFunc(max(l.left(now)-l.reserve(), 0), l.endSettle)
}

func (l *lifetimes) stopTimers() {
	for _, t := range []longshore.Timer{l.hardTimer, l.settleTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// handlersCut says that the handlers' contexts have ended.
func (l *lifetimes) handlersCut() bool { return l.base.Err() != nil }

// deadlines are the times of a stop.
type deadlines struct {
	grace time.Duration // Config.CancelGrace: what is cut off has this long to end
	begun time.Time     // when the stop was requested; zero: it was not
	soft  time.Time     // until when running handlers are waited for
	end   time.Time     // when everything must be over
}

// lastAnswer is the time for the last steps once all handlers have returned, within the
// drain's own time: a broker that is far away, throttles or elects another leader needs
// seconds, and messages that it does not confirm are handled twice. The last steps do not
// get all of the remaining time, because a broker that is gone uses up whatever it gets.
const lastAnswer = 5 * time.Second

// begin sets the deadlines, or makes them earlier.
func (t *deadlines) begin(now, soft, end time.Time) {
	if t.begun.IsZero() {
		t.begun, t.soft, t.end = now, soft, end
	}
	t.soft, t.end = earlier(t.soft, soft), earlier(t.end, end)
}

// cutOff leaves running handlers their grace; if none runs, it leaves the broker time to
// respond.
func (t *deadlines) cutOff(now time.Time, running int) {
	rest := t.grace
	if running == 0 {
		rest = max(rest, lastAnswer)
	}
	t.end = earlier(t.end, now.Add(rest))
}

// reserve is the part of the time that is kept for flushing and closing.
func (t *deadlines) reserve() time.Duration { return min(t.grace/4, 500*time.Millisecond) }

// workEnd is when even handlers that were cut off are no longer waited for.
func (t *deadlines) workEnd() time.Time { return t.end.Add(-t.reserve()) }

// left is the time until everything must be over.
func (t *deadlines) left(now time.Time) time.Duration { return max(t.end.Sub(now), 0) }

// lastSteps divides the remaining time: flushing must leave time for closing, and closing
// must leave time for the transport to report the settlements that were not confirmed.
func (t *deadlines) lastSteps(now time.Time) (flush, closing time.Time) {
	left := t.left(now)
	return t.end.Add(-left / 4), t.end.Add(-left / 8)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
