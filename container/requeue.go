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
	*dispatcher
	settler *settler // gives back
}

// releaseAll implements giveBack.
func (b *returner) releaseAll(out []*dispatch.Item[item]) { b.settler.releaseAll(out) }

// releaseOrphans implements requeuer.
func (b *returner) releaseOrphans() {
	b.mu.Lock()
	out := b.sched.TakeOrphans()
	b.mu.Unlock()
	b.settler.releaseAll(out)
}

// takenBack drops the lost deliveries; so many are reported for the first time.
func (b *returner) takenBack(n int) {
	b.mu.Lock()
	b.countLost(n)
	open := b.dropLost()
	b.wakeOne()
	b.mu.Unlock()
	b.settler.lost(open)
}

// loseAll tells every delivery of a closed consumer that it is lost, in case the
// transport did not, and forgets those that no handler has. It returns how many
// there were.
func (b *returner) loseAll(g *generation) int {
	n, open := b.loseHeld(g)
	b.settler.lost(open)
	return n
}

func (b *returner) loseHeld(g *generation) (n int, open []*item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ours := 0
	for t := range b.sched.All() {
		if it := t.Of; it.gen == g {
			n++
			if it.d.Root().Lose(longshore.ErrLost) && g.isDown() {
				ours++ // the transport finds it lost already and does not report it
			}
		}
	}
	b.countLost(ours)
	open = b.dropLost()
	b.wakeOne()
	return n, open
}

// dropLost forgets the lost deliveries that no handler has. It returns those that a
// handler left open, for settler.lost. It is called with mu held.
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

// sweepLost forgets the lost deliveries that wait, and takes out what is behind them. It
// also runs before redelivered messages enter their lanes: the transport marks a delivery as
// lost before the broker delivers it again, but reports that later. What comes again would
// otherwise pass for a follower of the lost delivery, and go back with its followers while
// those behind it stay.
func (r *dispatcher) sweepLost() {
	for _, t := range r.sched.Lose(isLost) {
		r.forget(t.Of)
	}
	r.orphaned()
	r.goesOn()
}

// countLost counts deliveries that the broker took back, each once: by whoever told
// the delivery first, the transport or the container. It is called with mu held.
func (b *returner) countLost(n int) {
	b.count.lost += int64(n)
	if b.reporting() {
		b.log.drained(tally{lost: n})
	}
}

// lost tells a delivery that the broker took back from one that was settled a moment
// ago: neither is owned. One whose handler an operator has interrupted has another cause.
func lost(d *longshore.Delivery) bool {
	return !d.Owned() && (d.TakenBack() || errors.Is(context.Cause(d.Context()), longshore.ErrLost))
}

// isLost says whether the broker took back what an item stands for.
func isLost(it *item) bool {
	if it.State() == dispatch.Running {
		return lost(it.d)
	}
	return !it.d.Owned()
}
