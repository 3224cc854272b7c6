package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/longshore-go/longshore"
)

// Metrics counts and times what handlers do with messages:
// messaging.process.duration, messaging.client.consumed.messages,
// longshore.verdicts, longshore.attempts, longshore.delivery.age, and
// messaging.client.operation.duration of the calls at the broker. It lives on the
// verdicts and operations that a container tells its middlewares, so it reads no clock
// for a message and works for batches too; outside a container it does nothing. Make one and share it.
func (t *Telemetry) Metrics() longshore.Middleware {
	m := &metrics{codes: t.codes}
	var errs [6]error
	m.duration, errs[0] = t.timer("messaging.process.duration", "Time a handler took, without waiting for permits and locks.")
	m.age, errs[1] = t.meter.Float64Histogram("longshore.delivery.age", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400),
		metric.WithDescription("Age of messages, by their timestamps, when their handlers began; a sample."))
	m.calls.duration, errs[5] = t.operations()
	all := totals{
		t.counter("messaging.client.consumed.messages", "Messages that were given to a handler.", &errs[2]),
		t.counter("longshore.verdicts", "What became of messages: ack, retry, reject, discard, release, lost.", &errs[3]),
		t.counter("longshore.attempts", "Messages that were given to a handler, by the number of their attempt.", &errs[4]),
	}
	if m.problem = errors.Join(errs[:]...); m.problem == nil {
		// Counting is an atomic of ours, read when the provider collects: a counter of
		// the SDK costs as much as all the rest of a message.
		_, m.problem = t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
			m.count(out, all)
			return nil
		}, all.consumed, all.verdicts, all.attempts)
	}
	return m
}

func (t *Telemetry) counter(name, what string, err *error) metric.Int64Observable {
	c, e := t.meter.Int64ObservableCounter(name, metric.WithUnit("{message}"), metric.WithDescription(what))
	*err = e
	return c
}

type metrics struct {
	duration func(attribute.Set) func(time.Duration)
	age      metric.Float64Histogram
	calls    operations
	problem  error
	codes    *names
	points   sync.Map    // of series to *point; bounded: sources × verdicts × attempts × codes
	usual    memo[usual] // those without an error, found faster
}

// series is what the labels of one point come from.
type series struct {
	transport, source, group string
	verdict                  longshore.Verdict
	attempt                  uint8 // a place in attemptNames
	code                     string
}

// point has the labels ready: making them costs more than counting.
type point struct {
	n       atomic.Int64
	aged    atomic.Int64 // when an age was recorded last, Unix nanoseconds
	process func(took time.Duration)
	age     []metric.RecordOption
}

// ageEvery is how often a point records an age. Messages that come at one time have
// one age, more or less; recording it costs as much as all the rest.
const ageEvery = 10 * time.Millisecond

func (p *point) ageDue(now time.Time) bool {
	at, last := now.UnixNano(), p.aged.Load()
	return at-last >= int64(ageEvery) && p.aged.CompareAndSwap(last, at)
}

// usual are the points of one subscription without an error.
type usual struct {
	points [longshore.VerdictLost + 1][attempts]atomic.Pointer[point]
}

// attempts is how many values the label attempt has.
const attempts = 7

func attemptNames() [attempts]string { return [attempts]string{"1", "2", "3", "4", "5", "6-10", "11+"} }

// placeOf is the attempt's place among the names.
func placeOf(attempt int) uint8 {
	switch {
	case attempt <= 1:
		return 0
	case attempt <= 5:
		return uint8(attempt - 1)
	case attempt <= 10:
		return 5
	}
	return 6
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
	p := m.find(d.Origin.Subscription, o.Verdict, placeOf(d.Attempt), o.Err)
	p.n.Add(1)
	p.process(o.Took)
	if at := d.Received().Timestamp; !at.IsZero() && p.ageDue(o.Started) {
		m.age.Record(context.Background(), max(o.Started.Sub(at).Seconds(), 0), p.age...)
	}
}

// find returns the point of an outcome.
func (m *metrics) find(sub *longshore.Subscription, v longshore.Verdict, attempt uint8, err error) *point {
	s := series{verdict: v, attempt: attempt}
	if sub != nil {
		s.transport, s.source, s.group = sub.Transport, sub.Source, sub.Group
	}
	if err != nil || int(v) > int(longshore.VerdictLost) {
		s.code = m.codes.of(codeOf(err))
		return m.point(s)
	}
	place := &m.usual.get(sub, func(*longshore.Subscription) *usual { return &usual{} }).points[v][attempt]
	p := place.Load()
	if p == nil {
		p = m.point(s)
		place.Store(p)
	}
	return p
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
		process: m.duration(attribute.NewSet(process...)),
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

// totals are what Outcome counts, under the labels of the counters.
type totals struct{ consumed, verdicts, attempts metric.Int64Observable }

// count shows the totals. Points that differ by what a counter does not show are
// added up; verdicts and attempts that a source has not seen yet are shown with 0.
func (m *metrics) count(out metric.Observer, t totals) {
	all, ended, tries := map[series]int64{}, map[series]int64{}, map[series]int64{}
	m.points.Range(func(k, v any) bool {
		s, ok := k.(series)
		p, ok2 := v.(*point)
		if ok && ok2 {
			n, of := p.n.Load(), series{transport: s.transport, source: s.source, group: s.group}
			if _, known := all[of]; !known {
				begin(of, ended, tries)
			}
			all[of] += n
			by := of
			by.verdict = s.verdict
			ended[by] += n
			by = of
			by.attempt = s.attempt
			tries[by] += n
		}
		return true
	})
	for s, n := range all {
		out.ObserveInt64(t.consumed, n, metric.WithAttributes(append(s.attributes(), attrOperation.String("process"))...))
	}
	for s, n := range ended {
		out.ObserveInt64(t.verdicts, n, metric.WithAttributes(append(s.attributes(), attrVerdict.String(s.verdict.String()))...))
	}
	names := attemptNames()
	for s, n := range tries {
		out.ObserveInt64(t.attempts, n, metric.WithAttributes(append(s.attributes(), attrAttempt.String(names[s.attempt]))...))
	}
}

// begin gives a source its zeros.
func begin(of series, byVerdict, byAttempt map[series]int64) {
	for _, v := range verdicts() {
		of.verdict = v
		byVerdict[of] += 0
	}
	of.verdict = 0
	for of.attempt = range uint8(attempts) {
		byAttempt[of] += 0
	}
}

func sourceAttributes(transport, source, group string) []attribute.KeyValue {
	out := []attribute.KeyValue{attrSystem.String(transport), attrDestination.String(source)}
	if group != "" {
		out = append(out, attrGroup.String(group))
	}
	return out
}
