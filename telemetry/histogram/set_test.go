package histogram_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/telemetry/histogram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	scope, schema = "test", "https://example.org/schema"
	name, what    = "messaging.process.duration", "Time."
)

func bounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

// collect is what a reader gives that has the set.
func collect(t *testing.T, reader *sdkmetric.ManualReader) []metricdata.ScopeMetrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				slices.SortFunc(h.DataPoints, func(a, b metricdata.HistogramDataPoint[float64]) int {
					return cmp.Compare(a.Attributes.Encoded(attribute.DefaultEncoder()), b.Attributes.Encoded(attribute.DefaultEncoder()))
				})
			}
		}
	}
	return all.ScopeMetrics
}

func TestASetCollectsWhatTheSDKWould(t *testing.T) {
	var set histogram.Set
	ours, theirs := sdkmetric.NewManualReader(sdkmetric.WithProducer(&set)), sdkmetric.NewManualReader()
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(theirs))
	provider, ok := set.Provider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(ours))).(histogram.Provider)
	if !ok {
		t.Fatal("no provider of the set")
	}
	instrument, err := sdk.Meter(scope, metric.WithSchemaURL(schema)).Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds()...))
	if err != nil {
		t.Fatal(err)
	}
	find := provider.Durations(scope, schema, name, what, bounds())
	both := func(d time.Duration, attrs attribute.Set) {
		find(attrs)(d)
		instrument.Record(context.Background(), d.Seconds(), metric.WithAttributeSet(attrs))
	}
	if got := collect(t, ours); len(got) != 0 {
		t.Fatalf("before anything was recorded: %v", got)
	}
	r := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a test
	for _, source := range []string{"a", "b", "c"} {
		attrs := attribute.NewSet(attribute.String("source", source))
		for _, b := range bounds() { // on an edge and next to it
			edge := time.Duration(b * float64(time.Second))
			both(edge-1, attrs)
			both(edge, attrs)
			both(edge+1, attrs)
		}
		for range 1000 {
			both(time.Duration(r.Int64N(int64(1)<<r.IntN(35))), attrs)
		}
	}
	find(attribute.NewSet(attribute.String("source", "never"))) // found, not recorded
	got, want := collect(t, ours), collect(t, theirs)
	if len(got) != 1 || len(want) != 1 {
		t.Fatalf("scopes: %d, the SDK has %d", len(got), len(want))
	}
	for _, s := range [][]metricdata.ScopeMetrics{got, want} {
		if h, ok := s[0].Metrics[0].Data.(metricdata.Histogram[float64]); ok {
			for i := range h.DataPoints { // a sum of floats depends on their order
				h.DataPoints[i].Sum = float64(time.Duration(h.DataPoints[i].Sum * float64(time.Second)).Round(time.Microsecond))
			}
		}
	}
	metricdatatest.AssertEqual(t, want[0], got[0], metricdatatest.IgnoreTimestamp())
}

// Two who ask for one name and the same attributes share a series: a page with two of
// them would be refused.
func TestOneNameIsOneSeries(t *testing.T) {
	var set histogram.Set
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(&set))
	provider, _ := set.Provider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))).(histogram.Provider)
	attrs := attribute.NewSet(attribute.String("source", "a"))
	for range 2 {
		provider.Durations(scope, schema, name, what, bounds())(attrs)(time.Millisecond)
	}
	provider.Durations("another", schema, name, what, bounds())(attrs)(time.Second)
	counts := map[string]uint64{}
	for _, s := range collect(t, reader) {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range h.DataPoints {
					counts[s.Scope.Name] += p.Count
				}
				if len(h.DataPoints) != 1 {
					t.Errorf("%s: %d series", s.Scope.Name, len(h.DataPoints))
				}
			}
		}
	}
	if counts[scope] != 2 || counts["another"] != 1 {
		t.Errorf("counted %v", counts)
	}
}

// A collection in the middle sees whole records: never fewer in the sum than were
// counted.
func TestCollectingWhileRecording(t *testing.T) {
	const workers, each = 4, 2000
	var set histogram.Set
	provider, _ := set.Provider(sdkmetric.NewMeterProvider()).(histogram.Provider)
	record := provider.Durations(scope, schema, name, what, bounds())(attribute.NewSet())
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				record(time.Second)
			}
		})
	}
	read := func() metricdata.HistogramDataPoint[float64] {
		scopes, err := set.Produce(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(scopes) == 0 {
			return metricdata.HistogramDataPoint[float64]{}
		}
		h, _ := scopes[0].Metrics[0].Data.(metricdata.Histogram[float64])
		return h.DataPoints[0]
	}
	want := instrumentation.Scope{Name: scope, SchemaURL: schema}
	for last := uint64(0); last < workers*each; {
		p := read()
		if p.Count < last || p.Sum < float64(p.Count) || p.Sum > workers*each {
			t.Fatalf("count %d after %d, sum %v", p.Count, last, p.Sum)
		}
		last = p.Count
	}
	wg.Wait()
	p := read()
	least, _ := p.Min.Value()
	most, _ := p.Max.Value()
	if p.Count != workers*each || p.Sum != workers*each || least != 1 || most != 1 {
		t.Errorf("%d, sum %v, from %v to %v", p.Count, p.Sum, least, most)
	}
	if scopes, _ := set.Produce(context.Background()); scopes[0].Scope != want {
		t.Errorf("scope %v", scopes[0].Scope)
	}
}

// flushes is a provider that can be flushed, and fails.
type flushes struct {
	metric.MeterProvider
	err error
}

func (f flushes) ForceFlush(context.Context) error { return f.err }

func TestTheProviderFlushesTheOneInside(t *testing.T) {
	var set histogram.Set
	gone := errors.New("the collector is away")
	flush, ok := set.Provider(flushes{err: gone}).(interface {
		ForceFlush(ctx context.Context) error
	})
	if !ok {
		t.Fatal("it cannot be flushed")
	}
	if err := flush.ForceFlush(t.Context()); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
