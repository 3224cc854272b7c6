package prom

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/telemetry/histogram"
)

// Config of a [Page]. The zero value shows what is measured through its provider,
// the Go runtime and the process.
type Config struct {
	// Registry is where the metrics are registered; nil: one of the page's own, with
	// the Go runtime and the process in it. With a registry that is given, nothing but
	// the provider's metrics is added.
	Registry *prometheus.Registry
}

// Page is a meter provider and the page that shows it. It is safe for concurrent
// use.
type Page struct {
	provider  *sdkmetric.MeterProvider
	durations histogram.Set
	registry  *prometheus.Registry
}

// New makes one. It does no I/O and starts nothing; the error is one of the
// registry. Make one page for a registry.
func New(cfg Config) (*Page, error) {
	p := &Page{registry: cfg.Registry}
	if p.registry == nil {
		p.registry = prometheus.NewRegistry()
		p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})) // an empty registry takes them
	}
	// Scope and target would be two labels more on each series, the same everywhere.
	reader, err := exporter.New(exporter.WithRegisterer(p.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo(), exporter.WithProducer(&p.durations))
	if err != nil {
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "show metrics to Prometheus", Err: err, Hint: "use one page for a registry"}
	}
	p.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return p, nil
}

// MeterProvider is what telemetry.Config takes, and otel.SetMeterProvider.
func (p *Page) MeterProvider() metric.MeterProvider { return p.durations.Provider(p.provider) }

// Handler serves the page, in the format that the scraper asks for. A metric that
// cannot be read leaves the others on the page.
func (p *Page) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Close ends the provider: what is measured later goes nowhere.
func (p *Page) Close(ctx context.Context) error { return p.provider.Shutdown(ctx) }
