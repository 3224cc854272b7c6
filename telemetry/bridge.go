package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// BridgeProgress is how far a route of a bridge has come, as in bridge.Progress.
type BridgeProgress struct {
	Forwarded, Looped, Skipped, Parked int64
	Lag                                int64         // what remains at the source; -1 = unknown
	Age                                time.Duration // of the message forwarded last; 0 = unknown
}

// ObserveBridge shows a bridge's route: longshore.bridge.messages by outcome,
// longshore.bridge.lag and longshore.bridge.age. read is asked once at each collection. name is
// the label longshore.bridge. stop ends it.
//
//	stop, err := tel.ObserveBridge("orders", func() telemetry.BridgeProgress {
//		p := route.Progress()
//		return telemetry.BridgeProgress{Forwarded: p.Forwarded, Looped: p.Looped, Skipped: p.Skipped, Parked: p.Parked, Lag: p.Lag, Age: p.Age}
//	})
func (t *Telemetry) ObserveBridge(name string, read func() BridgeProgress) (stop func() error, err error) {
	messages, err1 := t.meter.Int64ObservableCounter("longshore.bridge.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that a route of a bridge is done with: forwarded, looped, skipped, parked."))
	lag, err2 := t.meter.Int64ObservableGauge("longshore.bridge.lag", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that remain at the source of a bridge's route."))
	age, err3 := t.meter.Float64ObservableGauge("longshore.bridge.age", metric.WithUnit("s"),
		metric.WithDescription("Age of the message that a bridge's route forwarded last, since it was published."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	label := metric.WithAttributes(attrBridge.String(name))
	of := func(outcome string) metric.MeasurementOption {
		return metric.WithAttributes(attrBridge.String(name), attrOutcome.String(outcome))
	}
	forwarded, looped, skipped, parked := of("forwarded"), of("looped"), of("skipped"), of("parked")
	reg, err := t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		p := read()
		out.ObserveInt64(messages, p.Forwarded, forwarded)
		out.ObserveInt64(messages, p.Looped, looped)
		out.ObserveInt64(messages, p.Skipped, skipped)
		out.ObserveInt64(messages, p.Parked, parked)
		if p.Lag >= 0 {
			out.ObserveInt64(lag, p.Lag, label)
		}
		if p.Age != 0 {
			out.ObserveFloat64(age, max(p.Age, 0).Seconds(), label)
		}
		return nil
	}, messages, lag, age)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}
