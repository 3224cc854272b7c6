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
	out.duration, err = t.meter.Float64Histogram("messaging.client.operation.duration", metric.WithUnit("s"), seconds(),
		metric.WithDescription("Time a broker took to confirm what was published."))
	out.sent, err2 = t.meter.Int64Counter("messaging.client.sent.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that a broker has confirmed."))
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
	ctx, span := p.t.tracer.Start(ctx, "publish "+dest, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(attrs[:len(attrs):len(attrs)], attrOpType.String("send"), attrBatch.Int(len(msgs)))...))
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
	timed := attrs
	if err != nil {
		timed = append(attrs[:len(attrs):len(attrs)], attrErrorType.String(codeOf(err)))
	}
	p.duration.Record(ctx, took, metric.WithAttributes(timed...))
	p.sent.Add(ctx, int64(len(msgs)-failed), metric.WithAttributes(attrs...))
	return err
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
