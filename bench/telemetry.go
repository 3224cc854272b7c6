package main

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/histogram"
)

// sampled is the share of messages whose spans are recorded.
const sampled = 0.1

// observed measures what metrics and traces add to a message in a container on the memory
// transport. Spans go to an exporter that drops them, through the SDK's batcher.
func observed(o options, r *report) error {
	n := o.count(200_000)
	var durations histogram.Set
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader(sdkmetric.WithProducer(&durations))))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(dropped{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(sampled))))
	defer func() { _, _ = meters.Shutdown(context.Background()), tracers.Shutdown(context.Background()) }() // nothing is exported
	tel := telemetry.New(telemetry.Config{MeterProvider: durations.Provider(meters), TracerProvider: tracers})
	with := func(mws ...longshore.Middleware) func() (sample, error) {
		return func() (sample, error) { return hotContainer(n, hotKeys, 1, false, mws...) }
	}
	vs := []variant{
		{"no telemetry", with()},
		{"metrics", with(tel.Metrics())},
		{"metrics and tracing, 10 % sampled", with(tel.Trace(), tel.Metrics())},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	var rows [][]string
	var added []float64
	for i, v := range vs {
		over := median(differences(ss[i], ss[0], sample.cpuPer))
		added = append(added, over)
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.cpuPer), "%.0f"), fmt.Sprintf("%+.0f", over), fmt.Sprintf("%.2f", median(each(ss[i], sample.allocPer)))})
	}
	r.table(fmt.Sprintf("Telemetry: memory transport, one worker, no-op handler, %d messages", n), []string{"variant", "CPU ns/msg min / median / max", "added (median)", "allocs/msg"}, rows)
	r.bar("metrics per message", fmt.Sprintf("%+.0f ns", added[1]), "≤ 150 ns", added[1] <= 150)
	r.bar("metrics and tracing per message, 10 % sampled", fmt.Sprintf("%+.0f ns", added[2]), "≤ 2000 ns", added[2] <= 2000)
	return nil
}

// dropped is an exporter that keeps nothing.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

func (dropped) Shutdown(context.Context) error { return nil }
