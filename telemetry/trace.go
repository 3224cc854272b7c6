package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/longshore-go/longshore"
)

// Trace makes a span of each call of the handler, a child of the one that the
// message was published in: one trace from the producer through every retry to the
// dead letter, which keep the message's headers. A batch is a span of its own that
// links to the producers. The handler finds the span in its context, and
// [Telemetry.Publisher] carries it on. Headers that are no valid context are ignored.
//
// Put it outermost, so that what follows runs inside of the span.
func (t *Telemetry) Trace() longshore.Middleware { return tracing{t} }

type tracing struct{ t *Telemetry }

func (tracing) Name() string { return "trace" }

func (m tracing) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		ctx, span := m.start(m.t.extract(ctx, d), d)
		return within(span, func() error { return next.Handle(ctx, d) })
	})
}

func (m tracing) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		if len(ds) == 0 {
			return next.HandleBatch(ctx, ds)
		}
		links := make([]trace.Link, 0, len(ds))
		for _, d := range ds {
			if sc := trace.SpanContextFromContext(m.t.extract(context.Background(), d)); sc.IsValid() { //nolint:contextcheck // the producer's, not ours
				links = append(links, trace.Link{SpanContext: sc})
			}
		}
		ctx, span := m.start(ctx, ds[0], trace.WithLinks(links...), trace.WithAttributes(attrBatch.Int(len(ds))))
		return within(span, func() error { return next.HandleBatch(ctx, ds) })
	})
}

func (t *Telemetry) extract(ctx context.Context, d *longshore.Delivery) context.Context {
	h := d.Received().Headers
	return t.propagator.Extract(ctx, carrier{&h})
}

func (m tracing) start(ctx context.Context, d *longshore.Delivery, more ...trace.SpanStartOption) (context.Context, trace.Span) {
	attrs := append(sourceAttributes(d.Origin.Transport(), d.Origin.Source(), ""), attrOperation.String("process"), attrOpType.String("process"))
	if s := d.Origin.Subscription; s != nil && s.Group != "" {
		attrs = append(attrs, attrGroup.String(s.Group))
	}
	if len(more) == 0 {
		attrs = append(attrs, attrMessageID.String(d.Received().ID))
	}
	if d.Attempt > 1 {
		attrs = append(attrs, attempt.Int(d.Attempt))
	}
	return m.t.tracer.Start(ctx, "process "+d.Origin.Source(), append(more, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...))...)
}

// within ends the span whatever happens; a panic goes its way.
func within(span trace.Span, f func() error) error {
	panicked := true
	defer func() {
		if panicked {
			span.SetAttributes(attrErrorType.String(string(longshore.CodePanic)))
			span.SetStatus(codes.Error, "panic")
		}
		span.End()
	}()
	err := f()
	panicked = false
	if err != nil {
		verdict, _ := longshore.VerdictOf(err)
		span.SetAttributes(attrErrorType.String(codeOf(err)))
		if verdict != longshore.VerdictRelease { // not the message's fault
			span.SetStatus(codes.Error, err.Error())
		}
	}
	return err
}
