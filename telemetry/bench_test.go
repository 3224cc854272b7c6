package telemetry_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/histogram"
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
// on. A span of the SDK with the same attributes, written by hand, is measured beside
// ours: what tracing costs beyond it is ours.
func BenchmarkPerMessage(b *testing.B) {
	var durations histogram.Set
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader(sdkmetric.WithProducer(&durations))))
	mp := durations.Provider(sdk)
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _, _ = sdk.Shutdown(context.Background()), tp.Shutdown(context.Background()) })
	off := telemetry.New(telemetry.Config{MeterProvider: mp, TracerProvider: noop.NewTracerProvider()})
	on := telemetry.New(telemetry.Config{MeterProvider: mp, TracerProvider: tp})
	quiet := middleware.Log(zap.NewNop())
	b.Run("metrics, histograms of the SDK", func(b *testing.B) { perMessage(b, telemetry.New(telemetry.Config{MeterProvider: sdk}).Metrics()) })
	b.Run("metrics", func(b *testing.B) { perMessage(b, off.Metrics()) })
	b.Run("tracing off", func(b *testing.B) { perMessage(b, off.Trace()) })
	b.Run("logging and tracing off, metrics on", func(b *testing.B) { perMessage(b, off.Trace(), off.Metrics(), quiet) })
	b.Run("a span by hand", func(b *testing.B) { perMessage(b, byHand(tp.Tracer("bench"))) })
	b.Run("tracing on", func(b *testing.B) { perMessage(b, on.Trace()) })
	b.Run("tracing and metrics on", func(b *testing.B) { perMessage(b, on.Trace(), on.Metrics(), quiet) })
}

// byHand is what somebody writes who traces one queue without this package.
func byHand(tracer trace.Tracer) longshore.Middleware {
	prop := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	return longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
		return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			ctx, span := tracer.Start(prop.Extract(ctx, headers{d}), "process orders", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				attribute.String("messaging.system", "rabbitmq"), attribute.String("messaging.destination.name", "orders"), attribute.String("messaging.operation.name", "process"),
				attribute.String("messaging.operation.type", "process"), attribute.String("messaging.message.id", d.ID)))
			defer span.End()
			return next.Handle(ctx, d)
		})
	})
}

// headers are those of a delivery, to be read only.
type headers struct{ *longshore.Delivery }

func (h headers) Get(name string) string { return h.Headers.String(name) }

func (headers) Set(string, string) {}

func (headers) Keys() []string { return nil }

// nowhere drops spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

func (nowhere) Shutdown(context.Context) error { return nil }
