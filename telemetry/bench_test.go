package telemetry_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/telemetry"
)

// perMessage runs what the middlewares add to a message, and reports the processor's
// time: the clock on the wall also counts what others do on the machine.
func perMessage(b *testing.B, mws ...longshore.Middleware) {
	b.Helper()
	h := longshore.Chain(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), mws...)
	var observers []longshore.OutcomeObserver
	for _, m := range mws {
		if o, ok := m.(longshore.OutcomeObserver); ok {
			observers = append(observers, o)
		}
	}
	now := time.Now()
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Attempt, d.ID, d.Timestamp = 1, "o-1", now.Add(-time.Second)
	d.Headers = longshore.Headers{{Name: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	d.Origin.Subscription = &longshore.Subscription{Transport: "rabbitmq", Source: "orders"}
	out := longshore.Outcome{Verdict: longshore.VerdictAck, Started: now, Took: time.Millisecond}
	ctx := context.Background()
	b.ReportAllocs()
	began := processorTime(b)
	for b.Loop() {
		_ = h.Handle(ctx, d)
		for _, o := range observers {
			o.Outcome(d, out)
		}
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The bar: at most 300 ns and one allocation with logging and tracing off and metrics
// on, at most 2 µs with tracing on.
func BenchmarkPerMessage(b *testing.B) {
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _, _ = mp.Shutdown(context.Background()), tp.Shutdown(context.Background()) })
	off := telemetry.New(telemetry.Config{MeterProvider: mp, TracerProvider: noop.NewTracerProvider()})
	on := telemetry.New(telemetry.Config{MeterProvider: mp, TracerProvider: tp})
	quiet := middleware.Log(zap.NewNop())
	b.Run("metrics", func(b *testing.B) { perMessage(b, off.Metrics()) })
	b.Run("tracing off", func(b *testing.B) { perMessage(b, off.Trace()) })
	b.Run("logging and tracing off, metrics on", func(b *testing.B) { perMessage(b, off.Trace(), off.Metrics(), quiet) })
	b.Run("tracing and metrics on", func(b *testing.B) { perMessage(b, on.Trace(), on.Metrics(), quiet) })
}

// nowhere drops spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

func (nowhere) Shutdown(context.Context) error { return nil }
