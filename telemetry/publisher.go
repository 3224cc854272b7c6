package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Publisher returns p with a span for each call of Publish, whose context goes out
// in the messages' headers (an existing one is replaced), and with the metrics
// messaging.client.operation.duration and messaging.client.sent.messages. system is
// the broker: rabbitmq, kafka, aws_sqs. The messages given to Publish are not
// changed.
func (t *Telemetry) Publisher(system string, p transport.Publisher) transport.Publisher {
	out := &publisher{Publisher: p, t: t, system: system}
	var err, err2 error
	out.duration, err = t.operations()
	out.sent, err2 = t.meter.Int64Counter("messaging.client.sent.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that were published; without error.type: that a broker has confirmed."))
	out.silent = err != nil || err2 != nil
	return out
}

type publisher struct {
	transport.Publisher
	t        *Telemetry
	system   string
	duration metric.Float64Histogram
	sent     metric.Int64Counter
	silent   bool // the provider refused an instrument
}

func (p *publisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	attrs := []attribute.KeyValue{attrSystem.String(p.system), attrDestination.String(dest), attrOperation.String("publish")}
	typed := append(attrs[:len(attrs):len(attrs)], attrOpType.String("send"))
	ctx, span := p.t.tracer.Start(ctx, "publish "+dest, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(append(typed[:len(typed):len(typed)], about(msgs)...)...))
	defer span.End()
	out := make([]*longshore.Message, len(msgs))
	for i, m := range msgs {
		out[i] = p.withContext(ctx, m)
	}
	began := time.Now()
	err := p.Publisher.Publish(ctx, dest, out...)
	took := time.Since(began).Seconds()
	failed := 0
	if err != nil {
		failed = len(msgs)
		var part *transport.PartialError
		if errors.As(err, &part) {
			failed = len(part.Failed)
		}
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attrErrorType.String(codeOf(err)))
	}
	if p.silent {
		return err
	}
	attrs[1] = attrDestination.String(p.t.dests.of(dest))
	typed = append(attrs[:len(attrs):len(attrs)], attrOpType.String("send"))
	p.sent.Add(ctx, int64(len(msgs)-failed), metric.WithAttributes(attrs...))
	if err != nil {
		code := attrErrorType.String(p.t.codes.of(codeOf(err)))
		p.sent.Add(ctx, int64(failed), metric.WithAttributes(append(attrs[:len(attrs):len(attrs)], code)...))
		typed = append(typed, code)
	}
	p.duration.Record(ctx, took, metric.WithAttributes(typed...))
	return err
}

// about is what a span says of the messages themselves: of one its ids, of several
// their number.
func about(msgs []*longshore.Message) (attrs []attribute.KeyValue) {
	if len(msgs) != 1 {
		return []attribute.KeyValue{attrBatch.Int(len(msgs))}
	}
	m := msgs[0]
	if m == nil {
		return nil
	}
	if m.ID != "" {
		attrs = append(attrs, attrMessageID.String(m.ID))
	}
	if m.CorrelationID != "" {
		attrs = append(attrs, attrConversation.String(m.CorrelationID))
	}
	return attrs
}

// withContext is a copy of the message with the span's context.
func (p *publisher) withContext(ctx context.Context, m *longshore.Message) *longshore.Message {
	if m == nil {
		return nil
	}
	c := *m
	c.Headers = m.Headers.Clone()
	p.t.propagator.Inject(ctx, carrier{&c.Headers})
	return &c
}
