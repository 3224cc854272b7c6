package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// outboxLimit ends the query of one collection, where the reader's own limit is longer.
const outboxLimit = 5 * time.Second

// Backlog is what an outbox holds, as in mutex.Backlog.
type Backlog struct {
	Pending int64         // rows
	Parked  int64         // of these, refused for the last time
	Age     time.Duration // of the oldest row; 0 = none
}

// ObserveOutbox shows how many rows an outbox holds and how old the oldest is. read asks
// the database, once at each collection and for 5 s at most; it may run in two at once.
// While it fails there are no points, and the provider's error handler hears of it. name
// is the label longshore.outbox. stop ends it.
//
//	stop, err := tel.ObserveOutbox("orders", func(ctx context.Context) (telemetry.Backlog, error) {
//		b, err := outbox.Backlog(ctx)
//		return telemetry.Backlog(b), err
//	})
func (t *Telemetry) ObserveOutbox(name string, read func(ctx context.Context) (Backlog, error)) (stop func() error, err error) {
	backlog, err1 := t.meter.Int64ObservableGauge("longshore.outbox.backlog", metric.WithUnit("{message}"),
		metric.WithDescription("Rows of the outbox that are not published, parked ones too."))
	parked, err2 := t.meter.Int64ObservableGauge("longshore.outbox.parked", metric.WithUnit("{message}"),
		metric.WithDescription("Rows of the outbox that were refused for the last time."))
	age, err3 := t.meter.Float64ObservableGauge("longshore.outbox.age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest row of the outbox; 0 if it is empty."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	labels := metric.WithAttributes(attrOutbox.String(name))
	reg, err := t.meter.RegisterCallback(func(ctx context.Context, out metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, outboxLimit)
		defer cancel()
		b, err := read(ctx)
		if err != nil {
			return fmt.Errorf("read the backlog of outbox %q: %w", name, err)
		}
		out.ObserveInt64(backlog, b.Pending, labels)
		out.ObserveInt64(parked, b.Parked, labels)
		out.ObserveFloat64(age, b.Age.Seconds(), labels)
		return nil
	}, backlog, parked, age)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}
