package histogram

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var _ metric.Producer = (*Set)(nil)

// Produce is for the SDK's readers: what has been recorded since the start.
func (s *Set) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var out []metricdata.ScopeMetrics
	for scope, families := range s.scopes {
		of := metricdata.ScopeMetrics{Scope: scope}
		for _, f := range families {
			if data := f.data(now); len(data.DataPoints) > 0 {
				of.Metrics = append(of.Metrics, metricdata.Metrics{Name: f.name, Description: f.description, Unit: "s", Data: data})
			}
		}
		if len(of.Metrics) > 0 {
			out = append(out, of)
		}
	}
	return out, nil
}

func (f *family) data(now time.Time) metricdata.Histogram[float64] {
	data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	for _, h := range f.series {
		if p, ok := h.point(now); ok {
			data.DataPoints = append(data.DataPoints, p)
		}
	}
	return data
}
