package container

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/transport"
)

// observer hears of one generation. A report of an earlier one finds its own
// generation and not the current one.
type observer struct {
	r *engine
	g *generation
}

func rnd() float64 { return rand.Float64() }

// Lost implements transport.Observer.
func (o *observer) Lost(ds []*longshore.Delivery, cause error) {
	r := o.r
	r.mu.Lock()
	r.countLost(len(ds))
	open := r.dropLost()
	r.wakeOne()
	r.mu.Unlock()
	r.endLost(open)
	if len(ds) > 0 {
		first := factsOf(ds[0])
		first.Age = r.s.clock.Now().Sub(first.ReceivedAt)
		r.emit(Event{Kind: EventLost, Err: cause, Count: len(ds), Delivery: first,
			Text: fmt.Sprintf("%d deliveries were taken back by the broker", len(ds))})
	}
}

// countLost counts deliveries that the broker took back, each once: by whoever told
// the delivery first, the transport or the container. The caller holds mu.
func (r *engine) countLost(n int) {
	r.count.lost += int64(n)
	if r.reporting() {
		r.log.drained(tally{lost: n})
	}
}

// SettleFailed implements transport.Observer.
func (o *observer) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	o.r.log.settleFailed(d, s, err)
}

// Down implements transport.Observer.
func (o *observer) Down(err error) {
	r := o.r
	if err == nil {
		err = &longshore.Error{Code: longshore.CodeConnLost, Source: r.s.name, Op: fmt.Sprintf("consume from %q", r.s.name), Err: errors.New("the consumer ended")}
	}
	r.mu.Lock()
	r.markDown(o.g, err)
	o.g.interrupt()
	r.changed()
	r.mu.Unlock()
	r.wake()
}

// Event implements transport.Observer.
func (o *observer) Event(e transport.Event) {
	r := o.r
	kind := EventNotice
	r.mu.Lock()
	switch e.Kind {
	case transport.EventBlocked:
		kind, r.blocked = EventBlocked, true
	case transport.EventUnblocked:
		kind, r.blocked = EventUnblocked, false
	case transport.EventStandby:
		kind, r.sub.standby = EventStandby, true
	case transport.EventActive:
		kind, r.sub.standby = EventActive, false
	case transport.EventSkipped:
		kind = EventSkipped
		r.log.skipped(e.Skipped)
	case transport.EventDeclared:
		kind, r.count.vitals.declared = EventDeclared, true
	}
	r.mu.Unlock()
	if e.Repeats > 0 {
		r.log.drained(tally{repeats: e.Repeats})
	}
	r.emit(Event{Kind: kind, Err: e.Err, Text: e.Text, Count: e.Repeats})
}

// Operation implements longshore.OperationObserver, for the middlewares that do.
func (o *observer) Operation(op longshore.Operation) {
	o.r.log.operation(op)
}

// loseAll tells every delivery of a closed consumer that it is lost, in case the
// transport did not, and forgets those that no handler has. It returns how many
// there were.
func (r *engine) loseAll(g *generation) int {
	n, open := r.loseHeld(g)
	r.endLost(open)
	return n
}

func (r *engine) loseHeld(g *generation) (n int, open []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := 0
	for t := range r.sched.All() {
		if it := t.Of; it.gen == g {
			n++
			if it.d.Root().Lose(longshore.ErrLost) && g.isDown() {
				ours++ // the transport finds it lost already and does not report it
			}
		}
	}
	r.countLost(ours)
	open = r.dropLost()
	r.wakeOne()
	return n, open
}

// dropLost forgets the lost deliveries that no handler has. It returns those that a
// handler left open, for endLost. The caller holds mu.
func (r *engine) dropLost() (open []*item) {
	r.sweepLost()
	for d, it := range r.manual {
		if !d.Owned() && it.returned {
			delete(r.manual, d)
			open = append(open, it)
		}
	}
	return open
}

// sweepLost forgets the lost deliveries that wait, and takes out what is behind them. It
// also runs before redelivered messages enter their lanes: the transport marks a delivery as
// lost before the broker delivers it again, but reports that later. What comes again would
// otherwise pass for a follower of the lost delivery, and go back with its followers while
// those behind it stay. The caller holds mu.
func (r *dispatcher) sweepLost() {
	for _, t := range r.sched.Lose(isLost) {
		r.forget(t.Of)
	}
	r.orphaned()
	r.goesOn()
}

// endLost ends what was lost after its handler had returned without settling it: with
// its permit, and told and counted as lost.
func (r *engine) endLost(open []*item) {
	for _, it := range open {
		end := r.now()
		r.done(nil, it, judgement{verdict: longshore.VerdictLost, end: end, took: end.Sub(it.started)})
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
