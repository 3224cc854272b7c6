package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// MutexStats is what a mutex has counted since it was made, as in mutex.Stats.
type MutexStats struct {
	Acquired, Held, Absent, AbsentFirst int64
	Duplicates                          int64
	Committed, Failed, Unknown          int64
}

// ObserveMutex shows what became of a mutex's looks at its rows, as longshore.mutex.outcomes:
// acquired, busy (somebody else holds it), absent (done already) and absent_first, which was
// no visible copy: more than a few mean that the producer publishes before its commit,
// or into another database; duplicate counts those acquired ones that had more than one
// row. read is asked once at each collection. name is the label
// longshore.mutex. stop ends it.
//
//	stop, err := tel.ObserveMutex("orders", func() telemetry.MutexStats { return telemetry.MutexStats(once.Stats()) })
func (t *Telemetry) ObserveMutex(name string, read func() MutexStats) (stop func() error, err error) {
	looks, err := t.meter.Int64ObservableCounter("longshore.mutex.outcomes", metric.WithUnit("{look}"),
		metric.WithDescription("What became of a mutex's looks at its rows: acquired, busy, absent, absent_first, duplicate."))
	if err != nil {
		return nil, err
	}
	of := func(outcome string) metric.MeasurementOption {
		return metric.WithAttributes(attrMutex.String(name), attrOutcome.String(outcome))
	}
	acquired, busy, absent, first, duplicate := of("acquired"), of("busy"), of("absent"), of("absent_first"), of("duplicate")
	reg, err := t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		s := read()
		out.ObserveInt64(looks, max(s.Acquired-s.Duplicates, 0), acquired)
		out.ObserveInt64(looks, s.Duplicates, duplicate)
		out.ObserveInt64(looks, s.Held, busy)
		out.ObserveInt64(looks, max(s.Absent-s.AbsentFirst, 0), absent)
		out.ObserveInt64(looks, s.AbsentFirst, first)
		return nil
	}, looks)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}
