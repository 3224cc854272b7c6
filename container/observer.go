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
	common
	log   *eventLog     // counts and reports what is rare
	axes  *axes         // a loss may be what a stop waits for
	sub   *subscription // whose condition the transport reports
	count *counters     // what was declared, and what waits at the broker
	recv  *receiver     // takes out what leaves
	back  *returner     // ends what the broker took back
	g     *generation   // the subscription that is reported about
}

// of is an observer of one generation, for the same run.
func (o observer) of(g *generation) *observer {
	o.g = g
	return &o
}

func rnd() float64 { return rand.Float64() }

// Lost implements transport.Observer.
func (o *observer) Lost(ds []*longshore.Delivery, cause error) {
	o.back.takenBack(len(ds))
	if len(ds) > 0 {
		first := factsOf(ds[0])
		first.Age = o.s.clock.Now().Sub(first.ReceivedAt)
		o.emit(Event{Kind: EventLost, Err: cause, Count: len(ds), Delivery: first,
			Text: fmt.Sprintf("%d deliveries were taken back by the broker", len(ds))})
	}
}

// SettleFailed implements transport.Observer.
func (o *observer) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	o.locked(func() { o.count.delayed.failed(s.Delay) })
	o.log.settleFailed(d, s, err)
}

// Down implements transport.Observer.
func (o *observer) Down(err error) {
	if err == nil {
		err = &longshore.Error{Code: longshore.CodeConnLost, Source: o.s.name, Op: fmt.Sprintf("consume from %q", o.s.name), Err: errors.New("the consumer ended")}
	}
	o.locked(func() {
		o.recv.markDown(o.g, err)
		o.g.interrupt()
		o.axes.changed()
	})
	o.wake()
}

// Event implements transport.Observer.
func (o *observer) Event(e transport.Event) {
	kind := EventNotice
	o.locked(func() {
		switch e.Kind {
		case transport.EventBlocked:
			kind, o.sub.blocked = EventBlocked, true
		case transport.EventUnblocked:
			kind, o.sub.blocked = EventUnblocked, false
		case transport.EventStandby:
			kind, o.sub.standby = EventStandby, true
		case transport.EventActive:
			kind, o.sub.standby = EventActive, false
		case transport.EventSkipped:
			kind = EventSkipped
			o.log.skipped(e.Skipped)
		case transport.EventCleared:
			kind = EventCleared
		case transport.EventConsumer:
			kind = EventConsumer
		case transport.EventDeclared:
			kind, o.count.vitals.declared = EventDeclared, true
		}
	})
	if e.Repeats > 0 {
		o.log.drained(tally{repeats: e.Repeats})
	}
	o.emit(Event{Kind: kind, Err: e.Err, Text: e.Text, Condition: e.Condition, Count: e.Repeats})
}

// Operation implements longshore.OperationObserver, for the middlewares that do.
func (o *observer) Operation(op longshore.Operation) {
	o.log.operation(op)
}
