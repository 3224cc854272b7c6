package telemetry_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
)

// A backend that knows the conventions' versions translates by the schema URL.
func TestSchemaURLNamesTheConventions(t *testing.T) {
	const version = "/1.43.0" // as docs/reference/metrics.md says
	r := newRig(t)
	c := r.container(t, func(context.Context, *longshore.Delivery) error { return nil }, container.Config{})
	containertest.Publish(t, c, "a")
	containertest.WaitIdle(t, c)
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	if len(rm.ScopeMetrics) != 1 || !strings.HasSuffix(rm.ScopeMetrics[0].Scope.SchemaURL, version) {
		t.Errorf("metrics: %+v", rm.ScopeMetrics)
	}
	spans := r.spans.GetSpans()
	if len(spans) != 1 || !strings.HasSuffix(spans[0].InstrumentationScope.SchemaURL, version) {
		t.Errorf("spans: %+v", spans)
	}
}
