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
	held    *concluder // takes them out of what is held
	settler *settler   // gives back
}

// releaseAll gives back what was taken out of the Scheduler, in order.
func (b *returner) releaseAll(out []*dispatch.Item[item]) { b.settler.releaseAll(out) }

// releaseOrphans gives back what a lost delivery left behind in its lane.
func (b *returner) releaseOrphans() { b.settler.releaseAll(b.held.takeOrphans()) }

// takenBack ends what the broker took back; so many are reported for the first time.
func (b *returner) takenBack(n int) { b.settler.lost(b.held.takenBack(n)) }

// loseAll ends all deliveries of a closed consumer.
func (b *returner) loseAll(g *generation) { b.settler.lost(b.held.loseAll(g)) }

// abandonUnstarted forgets what closing the consumer gives back.
func (b *returner) abandonUnstarted(out []*dispatch.Item[item]) { b.held.abandon(out) }

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
