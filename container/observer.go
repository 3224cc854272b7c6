package container

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// observer hears of one generation. A report of an earlier one finds its own
// generation and not the current one.
type observer struct {
	r *run
	g *generation
}

func rnd() float64 { return rand.Float64() }

// Lost implements transport.Observer.
func (o *observer) Lost(ds []*longshore.Delivery, cause error) {
	r := o.r
	r.mu.Lock()
	r.countLost(len(ds))
	open := r.sweep()
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
func (r *run) countLost(n int) {
	r.count.lost += int64(n)
	if r.reporting() {
		r.tally.lost += n
	}
}

// SettleFailed implements transport.Observer.
func (o *observer) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	o.r.settleFailed(d, s, err)
}

// Down implements transport.Observer.
func (o *observer) Down(err error) {
	r := o.r
	if err == nil {
		err = &longshore.Error{Code: longshore.CodeConnLost, Source: r.s.name, Op: fmt.Sprintf("consume from %q", r.s.name), Err: errors.New("the consumer ended")}
	}
	r.mu.Lock()
	r.markDown(o.g, err)
	if o.g.cancel != nil {
		o.g.interrupt()
	}
	r.changed()
	r.mu.Unlock()
	r.wake()
}

// Event implements transport.Observer.
func (o *observer) Event(e transport.Event) {
	r := o.r
	kind := EventNotice
	r.mu.Lock()
	if r.axes.Stopping() {
		r.tally.repeats += e.Repeats
	}
	switch e.Kind {
	case transport.EventBlocked:
		kind, r.blocked = EventBlocked, true
	case transport.EventUnblocked:
		kind, r.blocked = EventUnblocked, false
	case transport.EventStandby:
		kind, r.standby = EventStandby, true
	case transport.EventActive:
		kind, r.standby = EventActive, false
	case transport.EventSkipped:
		kind = EventSkipped
		if r.count.skipped == nil {
			r.count.skipped = map[transport.SkipReason]int64{}
		}
		r.count.skipped[e.Skipped]++
	case transport.EventDeclared:
		kind = EventDeclared
	}
	r.mu.Unlock()
	r.emit(Event{Kind: kind, Err: e.Err, Text: e.Text, Count: e.Repeats})
}

// Operation implements longshore.OperationObserver, for the middlewares that do.
func (o *observer) Operation(op longshore.Operation) {
	r := o.r
	defer func() {
		if p := recover(); p != nil {
			r.notice(panicError(p), "a middleware panicked in Operation")
		}
	}()
	op.Transport, op.Source = r.s.about.Transport, r.s.about.Name
	for _, ob := range r.c.operators {
		ob.Operation(op)
	}
}

// loseAll tells every delivery of a closed consumer that it is lost, in case the
// transport did not, and forgets those that no handler has. It returns how many
// there were.
func (r *run) loseAll(g *generation) int {
	n, open := r.loseHeld(g)
	r.endLost(open)
	return n
}

func (r *run) loseHeld(g *generation) (n int, open []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := 0
	lose := func(it *item) {
		if it.gen == g {
			n++
			if it.d.Root().Lose(longshore.ErrLost) && g.down != nil {
				ours++ // the transport finds it lost already and does not report it
			}
		}
	}
	for i := range r.ready.n {
		lose(r.ready.at(i))
	}
	for _, it := range append(r.dead, r.parked...) {
		lose(it)
	}
	r.lanes.each(func(l *lane) {
		for it := l.head; it != nil; it = it.next {
			lose(it)
		}
	})
	for _, w := range r.workers {
		if w.it != nil && r.manual == nil {
			lose(w.it)
		}
		for _, it := range w.batch {
			lose(it)
		}
		for _, it := range w.ending {
			lose(it)
		}
	}
	for _, it := range r.manual {
		lose(it)
	}
	r.countLost(ours)
	open = r.sweep()
	r.wakeOne()
	return n, open
}

// sweep forgets the lost deliveries that no handler has. It returns those that a
// handler left open, for endLost. The caller holds mu.
func (r *run) sweep() (open []*item) {
	var gone []*item
	r.lanes.each(func(l *lane) {
		gap, back := false, l.mark // that of the batch which is with a handler
		l.filter(func(it *item) bool {
			before := back != nil
			if it == back {
				back = nil
			}
			switch {
			case !it.d.Owned():
				gap = true
				l.gap = l.gap || before && l.running > 0
				r.uncount(it, l.parked)
				r.drop(it)
				r.items.put(it)
			case gap: // of another subscription, behind one that comes again
				r.orphaned(l, it)
			default:
				return true
			}
			return false
		})
	})
	r.sweepRunning()
	r.ready.filter(func(it *item) bool {
		if it.d.Owned() {
			return true
		}
		gone = append(gone, it)
		return false
	})
	for _, it := range gone {
		r.running++
		r.gone(it)
	}
	r.sweepParked()
	for d, it := range r.manual {
		if !d.Owned() && it.returned {
			delete(r.manual, d)
			open = append(open, it)
		}
	}
	return open
}

// endLost ends what was lost after its handler had returned without settling it: with
// its permit, and told and counted as lost.
func (r *run) endLost(open []*item) {
	for _, it := range open {
		end := r.now()
		r.done(nil, it, judgement{verdict: longshore.VerdictLost, end: end, took: end.Sub(it.started)})
	}
}

// uncount takes an item that waits in a lane off the sums.
func (r *run) uncount(it *item, parked bool) {
	if parked {
		r.waitPark--
		r.parkBytes -= it.size
	} else {
		r.queued--
		r.bytes -= it.size
	}
}

// lost tells a delivery that the broker took back from one that was settled a moment
// ago: neither is owned. One whose handler an operator has interrupted has another cause.
func lost(d *longshore.Delivery) bool {
	return !d.Owned() && (d.TakenBack() || errors.Is(context.Cause(d.Context()), longshore.ErrLost))
}

// sweepRunning gives the followers of lost deliveries back while their handlers
// still run, or their verdicts are carried out: what arrives from now on comes behind
// the lost ones again.
func (r *run) sweepRunning() {
	look := func(it *item) {
		if it.lane == nil || it.swept || !lost(it.d) {
			return
		}
		it.swept = true
		r.orphanAll(it.lane)
	}
	for _, w := range r.workers {
		if w.it != nil && r.manual == nil {
			look(w.it)
		}
		for _, it := range w.batch {
			look(it)
		}
		for _, it := range w.ending {
			look(it)
		}
	}
	for _, it := range r.moving {
		look(it)
	}
	for _, it := range r.manual {
		look(it)
	}
}

func (r *run) sweepParked() {
	kept, due := r.parked, r.dead
	r.parked, r.dead = nil, nil
	for _, it := range kept {
		if it.d.Owned() {
			r.parked.push(it)
		} else {
			r.unparkLost(it)
		}
	}
	for _, it := range due { // the undertaker may be busy for long
		if it.d.Owned() {
			r.dead = append(r.dead, it)
		} else {
			r.unparkLost(it)
		}
	}
}

func (r *run) unparkLost(it *item) {
	r.unparkCounts(it)
	r.running++
	r.gone(it)
}
