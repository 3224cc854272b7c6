package histogram

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
)

// Set holds histograms. It is a producer for the readers of OpenTelemetry's SDK. The
// zero value is empty and ready; it is safe for concurrent use and must not be copied.
type Set struct {
	mu     sync.Mutex
	scopes map[instrumentation.Scope]map[string]*family
}

// family is the histograms of one name.
type family struct {
	name, description string
	bounds            []float64 // seconds
	series            map[attribute.Distinct]*histogram
}

// Provider returns mp as a meter provider whose histograms of handlers' durations are
// kept in the set. Give the set to the readers of mp too.
func (s *Set) Provider(mp metric.MeterProvider) metric.MeterProvider { return Provider{mp, s} }

// Provider is a meter provider with a [Set].
type Provider struct {
	metric.MeterProvider
	set *Set
}

// ForceFlush is that of the provider inside, where it has one: what asks for it finds it.
func (p Provider) ForceFlush(ctx context.Context) error {
	if inner, ok := p.MeterProvider.(interface {
		ForceFlush(ctx context.Context) error
	}); ok {
		return inner.ForceFlush(ctx)
	}
	return nil
}

// Durations is what package telemetry asks a provider for: a histogram in seconds with
// the bounds of its buckets. It returns how to find what records for some attributes:
// a function to keep, since finding it costs more than recording. The first
// description and bounds of a name stay.
func (p Provider) Durations(scope, schema, name, description string, bounds []float64) func(attribute.Set) (record func(time.Duration)) {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instrumentation.Scope{Name: scope, SchemaURL: schema}
	names := s.scopes[key]
	if names == nil {
		if s.scopes == nil {
			s.scopes = make(map[instrumentation.Scope]map[string]*family)
		}
		names = make(map[string]*family)
		s.scopes[key] = names
	}
	f := names[name]
	if f == nil {
		f = &family{name: name, description: description, bounds: bounds, series: make(map[attribute.Distinct]*histogram)}
		names[name] = f
	}
	return func(attrs attribute.Set) func(time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		h := f.series[attrs.Equivalent()]
		if h == nil {
			h = newHistogram(f.bounds, attrs)
			f.series[attrs.Equivalent()] = h
		}
		return h.record
	}
}
