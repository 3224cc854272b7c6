package container

import (
	"cmp"
	"slices"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// Part of a source can leave while the container goes on: partitions that a rebalance
// gives to another member, or whose position is moved. Nothing of them starts any more.
// What no handler has goes back at once, so that only running handlers are waited for,
// and what these leave undone goes back too instead of waiting here for its next attempt.

// Leaving implements transport.LeaveObserver.
func (o *observer) Leaving(parts []transport.TopicPartition) {
	o.r.withdraw(o.g, func(at longshore.Origin) bool {
		return slices.Contains(parts, transport.TopicPartition{Topic: at.Topic, Partition: at.Partition})
	})
}

// withdraw gives back what no handler has of the places that go.
func (r *run) withdraw(g *generation, goes func(longshore.Origin) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.axes.Stop >= state.Closing { // nothing starts, and closing gives all of it back
		return
	}
	if r.receiving && r.receiver == g { // it may have some in hand
		g.leaving = append(g.leaving, goes)
	}
	r.releaseSoon(r.takeLeaving(g, goes))
}

// receivedLeaving takes out again what left while a Receive had it in hand. The caller holds mu.
func (r *run) receivedLeaving(g *generation) {
	if len(g.leaving) == 0 {
		return
	}
	all := g.leaving
	g.leaving = nil
	for _, goes := range all {
		r.releaseSoon(r.takeLeaving(g, goes))
	}
}

// releaseSoon gives items back from a goroutine of its own: who reports that they leave
// must not wait for it.
func (r *run) releaseSoon(out []*item) {
	if len(out) == 0 {
		return
	}
	r.wg.Go(func() {
		for _, it := range out {
			r.release(it, it.d.Attempt)
		}
	})
}

// takeLeaving takes out, marked as running so that release can finish it, what of some
// partitions no handler has, and marks what runs. Followers go first: a lane whose head
// goes would let them start. The caller holds mu.
func (r *run) takeLeaving(g *generation, goes func(longshore.Origin) bool) (out []*item) {
	type place struct {
		it *item
		h  holding
	}
	var places []place
	for it, h := range r.holdings() {
		switch {
		case it.gen != g || !goes(it.d.Origin):
		case rank(h.state) == 0:
			it.leaving = true
		default:
			places = append(places, place{it, h})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(rank(b.h.state), rank(a.h.state)) })
	for _, p := range places {
		if r.takeOut(p.it, p.h) {
			out = append(out, p.it)
		}
	}
	return out
}
