package container

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// returner looks after deliveries that do not end by a verdict: it gives back to the
// broker what no handler has, and ends what the broker took back.
type returner struct {
	*dispatcher          // whose items it ends
	settler     *settler // gives back
}

// releaseAll implements giveBack.
func (b *returner) releaseAll(out []*dispatch.Item[item]) { b.settler.releaseAll(out) }

// releaseOrphans implements requeuer.
func (b *returner) releaseOrphans() {
	var out []*dispatch.Item[item]
	b.locked(func() { out = b.sched.TakeOrphans() })
	b.settler.releaseAll(out)
}

// takenBack drops the lost deliveries; so many are reported for the first time.
func (b *returner) takenBack(n int) {
	var open []*item
	b.locked(func() {
		b.countLost(n)
		open = b.dropLost()
		b.wakeOne()
	})
	b.settler.lost(open)
}

// loseAll marks every delivery of a closed consumer as lost, in case the transport did not,
// and forgets those that no handler has.
func (b *returner) loseAll(g *generation) {
	var open []*item
	b.locked(func() { open = b.loseHeld(g) })
	b.settler.lost(open)
}

// loseHeld is loseAll under the lock; open is what handlers left open.
func (b *returner) loseHeld(g *generation) (open []*item) {
	ours := 0
	for t := range b.sched.All() {
		if it := t.Of; it.gen == g && it.d.Root().Lose(longshore.ErrLost) && g.isDown() {
			ours++ // the transport finds it lost already and does not report it
		}
	}
	b.countLost(ours)
	open = b.dropLost()
	b.wakeOne()
	return open
}

// abandonUnstarted forgets what closing the consumer gives back.
func (b *returner) abandonUnstarted(out []*dispatch.Item[item]) {
	b.locked(func() {
		if b.axes.Stopping() {
			b.log.drained(tally{released: len(out)})
		}
		b.count.verdicts[longshore.VerdictRelease] += int64(len(out))
		for _, t := range out {
			b.finish(t.Of)
		}
	})
}

// dropLost forgets the lost deliveries that no handler has. It returns those that a
// handler left open, for settler.lost. mu is held.
func (b *returner) dropLost() (open []*item) {
	b.sweepLost()
	for d, it := range b.manual {
		if !d.Owned() && it.returned {
			delete(b.manual, d)
			open = append(open, it)
		}
	}
	return open
}

// countLost counts deliveries that the broker took back. Each is counted once: by the
// transport or by the container, whichever marked the delivery first. mu is held.
func (b *returner) countLost(n int) {
	b.count.lost += int64(n)
	if b.reporting() {
		b.log.drained(tally{lost: n})
	}
}

// lost tells a delivery that the broker took back from one that was settled a moment ago:
// neither is owned. One that was taken back while it was being settled counts as lost even
// if the verb succeeds: deliveries that arrive from now on come behind it, and giving them
// back as its followers would let later ones overtake them. One whose handler an operator
// has interrupted has another cause.
func lost(d *longshore.Delivery) bool {
	return !d.Owned() && (d.TakenBack() || d.LostSettling() || errors.Is(context.Cause(d.Context()), longshore.ErrLost))
}

// isLost says whether the broker took back what an item stands for.
func isLost(it *item) bool {
	if it.State() == dispatch.Running {
		return lost(it.d)
	}
	return !it.d.Owned()
}
