package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/longshore-go/longshore"
)

// Metrics counts and times what handlers do with messages:
// messaging.process.duration, messaging.client.consumed.messages,
// longshore.verdicts and longshore.delivery.age. It lives on the verdicts that a
// container tells its middlewares, so it reads no clock and works for batches too;
// outside a container it does nothing. Make one and share it.
func (t *Telemetry) Metrics() longshore.Middleware {
	m := &metrics{}
	var errs [4]error
	m.duration, errs[0] = t.meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"), seconds(),
		metric.WithDescription("Time a handler took, without waiting for permits and locks."))
	m.age, errs[1] = t.meter.Float64Histogram("longshore.delivery.age", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400),
		metric.WithDescription("Age of a message, by its timestamp, when its handler began."))
	consumed, err := t.meter.Int64ObservableCounter("messaging.client.consumed.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that were given to a handler."))
	errs[2] = err
	verdicts, err := t.meter.Int64ObservableCounter("longshore.verdicts", metric.WithUnit("{message}"),
		metric.WithDescription("What became of messages: ack, retry, reject, discard, release, lost."))
	errs[3] = err
	if m.problem = errors.Join(errs[:]...); m.problem == nil {
		// Counting is an atomic of ours, read when the provider collects: a counter of
		// the SDK costs as much as all the rest of a message.
		_, m.problem = t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
			m.count(out, consumed, verdicts)
			return nil
		}, consumed, verdicts)
	}
	return m
}

type metrics struct {
	duration, age metric.Float64Histogram
	problem       error
	points        sync.Map // of series to *point; bounded: sources × verdicts × codes
}

// series is what the labels of one point come from.
type series struct {
	transport, source, group string
	verdict                  longshore.Verdict
	code                     string
}

// point has the labels ready: making them costs more than counting.
type point struct {
	n       atomic.Int64
	process []metric.RecordOption
	age     []metric.RecordOption
}

func (*metrics) Name() string { return "metrics" }

// Check reports instruments that the provider refused.
func (m *metrics) Check(context.Context, longshore.Facts) error { return m.problem }

func (*metrics) Wrap(next longshore.Handler) longshore.Handler { return next }

func (*metrics) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler { return next }

// Outcome counts one message.
func (m *metrics) Outcome(d *longshore.Delivery, o longshore.Outcome) {
	if m.problem != nil {
		return
	}
	s := series{verdict: o.Verdict, code: codeOf(o.Err)}
	if sub := d.Origin.Subscription; sub != nil {
		s.transport, s.source, s.group = sub.Transport, sub.Source, sub.Group
	}
	p := m.point(s)
	p.n.Add(1)
	ctx := context.Background() // exemplars are the trace's business
	m.duration.Record(ctx, o.Took.Seconds(), p.process...)
	if at := d.Received().Timestamp; !at.IsZero() {
		m.age.Record(ctx, max(o.Started.Sub(at).Seconds(), 0), p.age...)
	}
}

func (m *metrics) point(s series) *point {
	if v, ok := m.points.Load(s); ok {
		if p, ok := v.(*point); ok {
			return p
		}
	}
	process := append(s.attributes(), attrOperation.String("process"))
	if s.code != "" {
		process = append(process, attrErrorType.String(s.code))
	}
	p := &point{
		process: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(process...))},
		age:     []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(s.attributes()...))},
	}
	v, _ := m.points.LoadOrStore(s, p)
	if stored, ok := v.(*point); ok {
		return stored
	}
	return p
}

func (s series) attributes() []attribute.KeyValue {
	return sourceAttributes(s.transport, s.source, s.group)
}

// count shows the totals. Points that differ by what a counter does not show are
// added up.
func (m *metrics) count(out metric.Observer, consumed, verdicts metric.Int64ObservableCounter) {
	all, each := map[series]int64{}, map[series]int64{}
	m.points.Range(func(k, v any) bool {
		s, ok := k.(series)
		p, ok2 := v.(*point)
		if ok && ok2 {
			s.code = ""
			each[s] += p.n.Load()
			s.verdict = longshore.VerdictNone
			all[s] += p.n.Load()
		}
		return true
	})
	for s, n := range each {
		out.ObserveInt64(verdicts, n, metric.WithAttributes(append(s.attributes(), attrVerdict.String(s.verdict.String()))...))
	}
	for s, n := range all {
		out.ObserveInt64(consumed, n, metric.WithAttributes(append(s.attributes(), attrOperation.String("process"))...))
	}
}

func sourceAttributes(transport, source, group string) []attribute.KeyValue {
	out := []attribute.KeyValue{attrSystem.String(transport), attrDestination.String(source)}
	if group != "" {
		out = append(out, attrGroup.String(group))
	}
	return out
}
