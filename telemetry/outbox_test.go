package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/telemetry"
)

func TestOutboxesAreToldApart(t *testing.T) {
	r := newRig(t)
	for name, b := range map[string]mutex.Backlog{"orders": {Pending: 7, Parked: 2, Age: 90 * time.Second}, "mails": {}} {
		stop, err := r.tel.ObserveOutbox(name, func(ctx context.Context) (telemetry.Backlog, error) {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("the query has no limit")
			}
			return telemetry.Backlog(b), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stop() }()
	}
	points := r.points(t)
	for _, want := range []string{"backlog longshore.outbox=orders 7", "parked longshore.outbox=orders 2", "age longshore.outbox=orders 90",
		"backlog longshore.outbox=mails 0", "parked longshore.outbox=mails 0", "age longshore.outbox=mails 0"} {
		wantPoint(t, points, "longshore.outbox."+want)
	}
}

// A database that is away is told, and shows no number that looks like an empty outbox.
func TestAnOutboxThatCannotBeReadShowsNothing(t *testing.T) {
	r, away := newRig(t), errors.New("the database is away")
	stop, err := r.tel.ObserveOutbox("orders", func(context.Context) (telemetry.Backlog, error) { return telemetry.Backlog{}, away })
	if err != nil {
		t.Fatal(err)
	}
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &rm); !errors.Is(err, away) || !strings.Contains(err.Error(), `outbox "orders"`) {
		t.Error(err)
	}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			t.Errorf("%s is shown", m.Name)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if points := r.points(t); len(points) != 0 {
		t.Errorf("after stop: %v", points)
	}
}
