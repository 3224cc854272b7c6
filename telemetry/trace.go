package telemetry

import (
	"context"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
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
// Where nothing is recorded (no provider, or OpenTelemetry's no-op) there is no span,
// and the producer's context is read from the headers only when somebody asks for it:
// the trace goes on behind this program, at the price of one allocation.
//
// Put it outermost, so that what follows runs inside of the span.
func (t *Telemetry) Trace() longshore.Middleware { return tracing{t, &memo[spanKind]{}} }

type tracing struct {
	t     *Telemetry
	spans *memo[spanKind]
}

// spanKind is what all spans of a subscription have in common.
type spanKind struct {
	name  string
	start []trace.SpanStartOption
}

func newSpanKind(s *longshore.Subscription) *spanKind {
	if s == nil {
		s = &longshore.Subscription{}
	}
	attrs := append(sourceAttributes(s.Transport, s.Source, s.Group), attrOperation.String("process"), attrOpType.String("process"))
	return &spanKind{"process " + s.Source, []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...)}}
}

func (tracing) Name() string { return "trace" }

func (m tracing) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if m.t.off() {
			return next.Handle(m.t.carry(ctx, d), d)
		}
		kind := m.spans.get(d.Origin.Subscription, newSpanKind)
		ctx, span := m.t.tracer.Start(m.t.extract(ctx, d), kind.name, kind.start...)
		end := ending{span: span, panicked: true}
		defer end.end()
		describe(span, d)
		err := next.Handle(ctx, d)
		end.returned(err)
		return err
	})
}

func (m tracing) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		if len(ds) == 0 || m.t.off() {
			return next.HandleBatch(ctx, ds)
		}
		links := make([]trace.Link, 0, len(ds))
		for _, d := range ds {
			if sc := trace.SpanContextFromContext(m.t.extract(context.Background(), d)); sc.IsValid() { //nolint:contextcheck // the producer's, not ours
				links = append(links, trace.Link{SpanContext: sc})
			}
		}
		kind := m.spans.get(ds[0].Origin.Subscription, newSpanKind)
		opts := append(slices.Clip(kind.start), trace.WithLinks(links...), trace.WithAttributes(attrBatch.Int(len(ds))))
		ctx, span := m.t.tracer.Start(ctx, kind.name, opts...)
		end := ending{span: span, panicked: true}
		defer end.end()
		err := next.HandleBatch(ctx, ds)
		end.returned(err)
		return err
	})
}

// describe adds what is a message's own, which no sampler needs. What it has not is
// left out.
func describe(span trace.Span, d *longshore.Delivery) {
	if !span.IsRecording() {
		return
	}
	var room [6]attribute.KeyValue
	attrs := room[:0]
	m := d.Received()
	if m.ID != "" {
		attrs = append(attrs, attrMessageID.String(m.ID))
	}
	if m.CorrelationID != "" {
		attrs = append(attrs, attrConversation.String(m.CorrelationID))
	}
	switch d.Origin.Transport() {
	case "kafka":
		attrs = append(attrs, attrPartition.String(strconv.Itoa(int(d.Origin.Partition))), attrOffset.Int64(int64(d.Origin.Position))) //nolint:gosec // Kafka's are int64
	case "rabbitmq":
		if d.Origin.RoutingKey != "" {
			attrs = append(attrs, attrRoutingKey.String(d.Origin.RoutingKey))
		}
	}
	if d.Attempt > 1 {
		attrs = append(attrs, attempt.Int(d.Attempt))
	}
	span.SetAttributes(attrs...)
}

// ending ends a span whatever happens; a panic goes its way.
type ending struct {
	span     trace.Span
	panicked bool
}

func (e *ending) returned(err error) {
	e.panicked = false
	if err == nil {
		return
	}
	verdict, _ := longshore.VerdictOf(err)
	e.span.SetAttributes(attrErrorType.String(codeOf(err)))
	if verdict != longshore.VerdictRelease { // not the message's fault
		e.span.SetStatus(codes.Error, err.Error())
	}
}

func (e *ending) end() {
	if e.panicked {
		e.span.SetAttributes(attrErrorType.String(string(longshore.CodePanic)))
		e.span.SetStatus(codes.Error, "panic")
	}
	e.span.End()
}
