package container

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// observer hears of one generation. A report of an earlier one finds its own
// generation and not the current one.
type observer struct {
	r *engine     // the run, also when it is over
	g *generation // the subscription that is reported about
}

func rnd() float64 { return rand.Float64() }

// Lost implements transport.Observer.
func (o *observer) Lost(ds []*longshore.Delivery, cause error) {
	r := o.r
	r.returner.takenBack(len(ds))
	if len(ds) > 0 {
		first := factsOf(ds[0])
		first.Age = r.s.clock.Now().Sub(first.ReceivedAt)
		r.emit(Event{Kind: EventLost, Err: cause, Count: len(ds), Delivery: first,
			Text: fmt.Sprintf("%d deliveries were taken back by the broker", len(ds))})
	}
}

// SettleFailed implements transport.Observer.
func (o *observer) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	o.r.locked(func() { o.r.count.delayed.failed(s.Delay) })
	o.r.log.settleFailed(d, s, err)
}

// Down implements transport.Observer.
func (o *observer) Down(err error) {
	r := o.r
	if err == nil {
		err = &longshore.Error{Code: longshore.CodeConnLost, Source: r.s.name, Op: fmt.Sprintf("consume from %q", r.s.name), Err: errors.New("the consumer ended")}
	}
	r.locked(func() {
		r.markDown(o.g, err)
		o.g.interrupt()
		r.changed()
	})
	r.wake()
}

// Event implements transport.Observer.
func (o *observer) Event(e transport.Event) {
	r := o.r
	kind := EventNotice
	r.locked(func() {
		switch e.Kind {
		case transport.EventBlocked:
			kind, r.sub.blocked = EventBlocked, true
		case transport.EventUnblocked:
			kind, r.sub.blocked = EventUnblocked, false
		case transport.EventStandby:
			kind, r.sub.standby = EventStandby, true
		case transport.EventActive:
			kind, r.sub.standby = EventActive, false
		case transport.EventSkipped:
			kind = EventSkipped
			r.log.skipped(e.Skipped)
		case transport.EventCleared:
			kind = EventCleared
		case transport.EventDeclared:
			kind, r.count.vitals.declared = EventDeclared, true
		}
	})
	if e.Repeats > 0 {
		r.log.drained(tally{repeats: e.Repeats})
	}
	r.emit(Event{Kind: kind, Err: e.Err, Text: e.Text, Condition: e.Condition, Count: e.Repeats})
}

// Operation implements longshore.OperationObserver, for the middlewares that do.
func (o *observer) Operation(op longshore.Operation) {
	o.r.log.operation(op)
}
