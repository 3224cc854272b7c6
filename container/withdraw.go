package container

import (
	"cmp"
	"slices"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/transport"
)

// Part of a source can leave while the container goes on: partitions that a rebalance
// gives to another member, or whose position is moved. Nothing of them starts any more.
// What no handler has goes back at once, so that only running handlers are waited for,
// and what these leave undone goes back too instead of waiting here for its next attempt.

// Leaving implements transport.LeaveObserver.
func (o *observer) Leaving(parts []transport.TopicPartition) {
	o.recv.withdraw(o.g, func(at longshore.Origin) bool {
		return slices.Contains(parts, transport.TopicPartition{Topic: at.Topic, Partition: at.Partition})
	})
}

// takeLeaving takes out what of some partitions no handler has, and marks what runs.
// Followers go first: a lane whose head goes would let them start.
func (c *receiver) takeLeaving(g *generation, goes func(longshore.Origin) bool) (out []*dispatch.Item[item]) {
	var places []*dispatch.Item[item]
	for t := range c.held.sched.All() {
		switch it := t.Of; {
		case it.gen != g || !goes(it.d.Origin):
		case t.State() == dispatch.Running:
			it.leaving = true
		default:
			places = append(places, t)
		}
	}
	slices.SortStableFunc(places, func(a, b *dispatch.Item[item]) int {
		return cmp.Compare(rank(waitsAs(b.Of)), rank(waitsAs(a.Of)))
	})
	for _, t := range places {
		if t.Of.d.Owned() && c.held.sched.TakeOne(t) {
			out = append(out, t)
		}
	}
	return out
}

// withdraw gives back what no handler has of the places that go.
func (c *receiver) withdraw(g *generation, goes func(longshore.Origin) bool) {
	c.locked(func() {
		if c.axes.ending() { // nothing starts, and closing gives all of it back
			return
		}
		if c.hand.intake.has(g) { // it may have some in hand
			g.leaving = append(g.leaving, goes)
		}
		c.returnSoon(c.takeLeaving(g, goes))
	})
}

// takeLeft takes out again what left while a Receive had it in hand.
func (c *receiver) takeLeft(g *generation) {
	all := g.leaving
	g.leaving = nil
	for _, goes := range all {
		c.returnSoon(c.takeLeaving(g, goes))
	}
}

// returnSoon gives items back from a goroutine of its own: whoever reports that they
// leave must not wait for it.
func (c *receiver) returnSoon(out []*dispatch.Item[item]) {
	if len(out) > 0 {
		c.hand.pool.wg.Go(func() { c.back.releaseAll(out) })
	}
}
