// Package histogram keeps histograms of durations for OpenTelemetry's SDK and counts
// in them at a small part of the SDK's own price, a few atomics for each value:
//
//	durations := &histogram.Set{}
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(durations))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	tel := telemetry.New(telemetry.Config{MeterProvider: durations.Provider(provider)})
//
// telemetry/prom and telemetry/otlp do so by themselves. What the SDK would collect is
// collected, to the last bucket, with three differences: views do not see it, its
// temporality is always cumulative, and its buckets are always explicit. Where one of
// these matters leave it out: the histograms are the SDK's then.
package histogram
