package container

import (
	"time"

	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
)

// suspend cancels the consumer because a middleware holds the intake, where it has no
// place to lose (see yield.go): the broker and its monitoring see that nothing is
// consumed. What runs goes on and is settled on the old consumer, which is closed when
// the last of it is. What was not started is given back, except where the broker counts
// that: there it waits here.
func (v *supervisor) suspend(g *generation) {
	over := false
	v.locked(func() {
		if over = !v.axes.Holds.Has(state.Middleware); over {
			return
		}
		g.forward(stageCanceled)
		g.interrupt()
		v.sub.leave()
		v.axes.Sub = state.Suspended
		if g.caps.CountsReturns {
			v.axes.Sub = state.Retained
		}
	})
	if over { // since it was decided
		return
	}
	until := v.soon()
	if err := v.callUntil(until, g.c.Cancel); err != nil {
		v.notice(err, "cancelling the consumer failed")
	}
	if g.caps.CountsReturns {
		v.keepBuffer(g, until)
		return
	}
	var out []*dispatch.Item[item]
	v.locked(func() { out = v.held.sched.TakeReady(&g.Owner) })
	v.back.releaseAll(out)
	v.flushThenRelease(g, until) // and both before we come again
}

// flushThenRelease lets the transport give back what it has buffered. What is older must
// be back before.
func (v *supervisor) flushThenRelease(g *generation, until time.Time) {
	if err := v.callUntil(until, g.c.Flush); err != nil {
		v.notice(err, "flushing a cancelled consumer failed")
	}
	v.releaseBuffer(g, until)
}

func (v *supervisor) releaseBuffer(g *generation, until time.Time) {
	if err := v.callUntil(until, g.c.Release); err != nil {
		v.notice(err, "giving back what was buffered failed")
	}
}

// keepBuffer takes in what the transport holds: given back at every opening of a
// breaker it would come to the broker's delivery limit without a handler ever
// having seen it.
func (v *supervisor) keepBuffer(g *generation, until time.Time) {
	v.waitFor(func() time.Time { return until }, func() bool { return !v.intake.under() })
	ctx, cancel := v.until(until)
	v.recv.pull(ctx, g)
	cancel()
	v.releaseBuffer(g, until) // nothing is left, unless the time was over
	v.wake()                  // the waiting may have used up a wake-up that was for another reason
}
