package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/longshore-go/longshore"
)

// operations times calls at a broker. It is one instrument of the SDK with what
// [Telemetry.Publisher] records: a call costs so much more that its price does not count.
type operations struct {
	duration metric.Float64Histogram
	options  sync.Map // of operation to []metric.RecordOption; bounded: sources × kinds × codes
}

// operation is what the labels of one series come from.
type operation struct {
	transport, source string
	kind              longshore.OperationKind
	code              string
}

func (t *Telemetry) operations() (metric.Float64Histogram, error) {
	return t.meter.Float64Histogram("messaging.client.operation.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(seconds()...),
		metric.WithDescription("Time that calls at a broker took: publish, until it confirmed; receive, with the wait for messages; ack, nack, reject, extend."))
}

// Operation times one call. It implements [longshore.OperationObserver].
func (m *metrics) Operation(o longshore.Operation) {
	if m.problem != nil {
		return
	}
	of := operation{o.Transport, o.Source, o.Kind, m.codes.of(string(o.Code))}
	v, ok := m.calls.options.Load(of)
	if !ok {
		v, _ = m.calls.options.LoadOrStore(of, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(of.attributes()...))})
	}
	if options, ok := v.([]metric.RecordOption); ok {
		m.calls.duration.Record(context.Background(), o.Took.Seconds(), options...)
	}
}

func (o operation) attributes() []attribute.KeyValue {
	out := append(sourceAttributes(o.transport, o.source, ""), attrOperation.String(string(o.kind)))
	switch o.kind { // an extension settles nothing and has no type in the conventions
	case longshore.OperationReceive:
		out = append(out, attrOpType.String("receive"))
	case longshore.OperationAck, longshore.OperationNack, longshore.OperationReject:
		out = append(out, attrOpType.String("settle"))
	case longshore.OperationExtend:
	}
	if o.code != "" {
		out = append(out, attrErrorType.String(o.code))
	}
	return out
}
