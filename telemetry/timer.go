package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// keeper is a meter provider that counts durations itself, as that of
// telemetry/histogram does: an instrument of the SDK costs more for each value than
// all the rest of a message.
type keeper interface {
	Durations(scope, schema, name, description string, bounds []float64) func(attribute.Set) (record func(time.Duration))
}

// timer makes a histogram of durations. What it returns finds the function that
// records for some attributes, which is kept.
func (t *Telemetry) timer(name, description string) (func(attribute.Set) func(time.Duration), error) {
	if t.keeper != nil {
		return t.keeper.Durations(scope, semconv.SchemaURL, name, description, seconds()), nil
	}
	h, err := t.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(seconds()...), metric.WithDescription(description))
	if err != nil {
		return nil, err
	}
	return func(attrs attribute.Set) func(time.Duration) {
		return sdkSeries{h, []metric.RecordOption{metric.WithAttributeSet(attrs)}}.record
	}, nil
}

// sdkSeries is a series of the SDK's histogram.
type sdkSeries struct {
	h     metric.Float64Histogram
	attrs []metric.RecordOption
}

func (s sdkSeries) record(d time.Duration) {
	s.h.Record(context.Background(), d.Seconds(), s.attrs...) // exemplars are the trace's business
}

// seconds are the boundaries that the conventions advise for durations.
func seconds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}
