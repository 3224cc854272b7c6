package telemetry_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

// What metrics add to a message.
func BenchmarkMetrics(b *testing.B) {
	r := newRig(b)
	o, _ := r.tel.Metrics().(longshore.OutcomeObserver)
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Timestamp = time.Now()
	d.Origin.Subscription = &longshore.Subscription{Transport: "rabbitmq", Source: "orders"}
	out := longshore.Outcome{Verdict: longshore.VerdictAck, Started: time.Now(), Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		o.Outcome(d, out)
	}
}

// What a span adds, recorded and dropped.
func BenchmarkTrace(b *testing.B) {
	r := newRig(b)
	h := longshore.Chain(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), r.tel.Trace())
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Origin.Subscription = &longshore.Subscription{Transport: "rabbitmq", Source: "orders"}
	b.ReportAllocs()
	for b.Loop() {
		_ = h.Handle(context.Background(), d)
		r.spans.Reset()
	}
}
