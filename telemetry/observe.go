package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// Observe shows the gauges and totals of containers, read whenever the provider
// collects. A container that has stopped shows its state and nothing else, so its
// other series end. stop ends it.
func (t *Telemetry) Observe(cs ...*container.ListenerContainer) (stop func() error, err error) {
	o := &observer{meter: t.meter}
	o.make()
	if o.problem != nil {
		return nil, o.problem
	}
	reg, err := t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		for _, c := range cs {
			o.observe(out, c.Stats())
		}
		return nil
	}, o.all...)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

// observer has the instruments of whole containers.
type observer struct {
	meter   metric.Meter
	problem error
	all     []metric.Observable

	state, workers, target, permits, inflight, lanes, parked, stuck, backlog, ready metric.Int64ObservableGauge
	busy, oldest, last                                                              metric.Float64ObservableGauge
	redelivered, deadLetters, settleFailures, reopens                               metric.Int64ObservableCounter
}

func (o *observer) make() {
	o.state = o.gauge("longshore.container.state", "{container}", "1 for the state that the container is in.")
	o.ready = o.gauge("longshore.container.ready", "{container}", "1 while deliveries flow or could.")
	o.workers = o.gauge("longshore.container.workers", "{worker}", "Workers that exist.")
	o.target = o.gauge("longshore.container.workers.target", "{worker}", "Workers that are wanted.")
	o.permits = o.gauge("longshore.container.permits", "{permit}", "Permits of the throttle, where there is one.")
	o.inflight = o.gauge("longshore.container.inflight", "{message}", "Deliveries held: running, ready, waiting in lanes.")
	o.parked = o.gauge("longshore.container.parked", "{message}", "Deliveries that wait for a retry, with their followers.")
	o.lanes = o.gauge("longshore.container.lanes", "{lane}", "Keys in work or waiting.")
	o.stuck = o.gauge("longshore.container.stuck", "{handler}", "Handlers that outlived their limit.")
	o.backlog = o.gauge("longshore.backlog", "{message}", "Messages that are not done yet, as the broker counts them.")
	o.busy = o.share("longshore.container.busy", "1", "Share of worker time that was busy, 0 to 1.")
	o.oldest = o.share("longshore.delivery.oldest", "s", "Time that the oldest delivery in hand has been here.")
	o.last = o.share("longshore.delivery.last", "s", "Time since something was received.")
	o.redelivered = o.total("longshore.redelivered", "{message}", "Deliveries that the broker had handed out before.")
	o.deadLetters = o.total("longshore.deadletters", "{message}", "Messages moved to the dead-letter place, by reason.")
	o.settleFailures = o.total("longshore.settle.failures", "{message}", "Settlements that were accepted and failed later.")
	o.reopens = o.total("longshore.reopens", "{reopen}", "Subscriptions that ended, by code.")
}

func (o *observer) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(g, err)
	return g
}

func (o *observer) share(name, unit, what string) metric.Float64ObservableGauge {
	g, err := o.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(g, err)
	return g
}

func (o *observer) total(name, unit, what string) metric.Int64ObservableCounter {
	c, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(c, err)
	return c
}

func (o *observer) add(i metric.Observable, err error) {
	o.problem = errors.Join(o.problem, err)
	o.all = append(o.all, i)
}

func (o *observer) observe(out metric.Observer, s container.Stats) {
	base := append(sourceAttributes(s.Transport, s.Source, ""), attrContainer.String(s.Name))
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributes(append(base[:len(base):len(base)], more...)...)
	}
	plain := with()
	out.ObserveInt64(o.state, 1, with(attribute.String("state", string(s.State))))
	if s.State == container.StateNew || s.State == container.StateStopped {
		return
	}
	ready := int64(0)
	if s.Ready {
		ready = 1
	}
	out.ObserveInt64(o.ready, ready, plain)
	out.ObserveInt64(o.workers, int64(s.Workers), plain)
	out.ObserveInt64(o.target, int64(s.Target), plain)
	out.ObserveInt64(o.inflight, int64(s.InFlight), plain)
	out.ObserveInt64(o.parked, int64(s.Parked), plain)
	out.ObserveInt64(o.lanes, int64(s.Lanes), plain)
	out.ObserveInt64(o.stuck, int64(s.Stuck), plain)
	out.ObserveFloat64(o.busy, s.Capacity, plain)
	out.ObserveFloat64(o.oldest, s.Oldest.Seconds(), plain)
	if s.Permits >= 0 {
		out.ObserveInt64(o.permits, int64(s.Permits), plain)
	}
	if !s.BacklogAt.IsZero() {
		out.ObserveInt64(o.backlog, s.Backlog, plain)
	}
	if !s.LastDelivery.IsZero() {
		out.ObserveFloat64(o.last, max(time.Since(s.LastDelivery).Seconds(), 0), plain)
	}
	out.ObserveInt64(o.redelivered, s.Redelivered, plain)
	byCode := func(c metric.Int64ObservableCounter, key attribute.Key, m map[longshore.Code]int64) {
		for code, n := range m {
			out.ObserveInt64(c, n, with(key.String(string(code))))
		}
	}
	byCode(o.deadLetters, "reason", s.DeadLetters)
	byCode(o.settleFailures, "code", s.SettleFailures)
	byCode(o.reopens, "code", s.Reopens)
}
