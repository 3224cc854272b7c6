package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// ObserveControl shows for how long the place of throttle directives could not be read,
// as longshore.control.age: 0 while it is read. Directives that are in force stay until
// they expire, so an age beyond their time means that the fleet runs as configured.
// read, asked once at each collection, is FleetStatus.Connected and Since; before the
// first try there is no series. scope is the label longshore.control. stop ends it.
//
//	stop, err := tel.ObserveControl("prod", func() (bool, time.Time) { s := fleet.Status(); return s.Connected, s.Since })
func (t *Telemetry) ObserveControl(scope string, read func() (connected bool, since time.Time)) (stop func() error, err error) {
	age, err := t.meter.Float64ObservableGauge("longshore.control.age", metric.WithUnit("s"),
		metric.WithDescription("Time for which throttle directives could not be read; 0 while they are."))
	if err != nil {
		return nil, err
	}
	of := metric.WithAttributes(attrControl.String(scope))
	reg, err := t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		switch connected, since := read(); {
		case connected:
			out.ObserveFloat64(age, 0, of)
		case !since.IsZero():
			out.ObserveFloat64(age, max(time.Since(since).Seconds(), 0), of)
		}
		return nil
	}, age)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}
