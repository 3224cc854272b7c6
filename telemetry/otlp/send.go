package otlp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/longshore-go/longshore/transport"
)

// requestTimeout bounds one request, like that of OpenTelemetry's own client.
const requestTimeout = 10 * time.Second

// client has connections of its own, which end with the exporter.
func client(cfg *Config) *http.Client {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: requestTimeout}
	if cfg.TLS != nil {
		base.TLSClientConfig = cfg.TLS.Clone()
	}
	return &http.Client{Timeout: requestTimeout, Transport: &keyed{Transport: base, headers: cfg.Headers}}
}

// keyed writes the headers.
type keyed struct {
	*http.Transport // CloseIdleConnections is its own
	headers         map[string]transport.Secret
}

// RoundTrip sends a request with the headers as they are now.
func (k *keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	r = r.Clone(ctx)
	for name, from := range k.headers {
		value, err := from.Get(ctx)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		r.Header.Set(name, value)
	}
	return k.Transport.RoundTrip(r)
}

// spans and numbers hand over what is to be sent and keep the errors: telemetry that
// cannot be sent is a line in the log and nobody's failure.
type spans struct {
	sdktrace.SpanExporter
	e *Exporter
}

// ExportSpans sends spans, until the exporter is closed at the most.
func (s spans) ExportSpans(ctx context.Context, all []sdktrace.ReadOnlySpan) error {
	ctx, cancel := s.e.within(ctx)
	defer cancel()
	s.e.reports[0].result(s.SpanExporter.ExportSpans(ctx, all))
	return nil
}

type numbers struct {
	sdkmetric.Exporter
	e *Exporter
}

// Export sends metrics, until the exporter is closed at the most.
func (n numbers) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	ctx, cancel := n.e.within(ctx)
	defer cancel()
	n.e.reports[1].result(n.Exporter.Export(ctx, all))
	return nil
}

// within is ctx, ended with the exporter.
func (e *Exporter) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ended, cancel)
	return ctx, func() { stop(); cancel() }
}
