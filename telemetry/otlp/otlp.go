package otlp

import (
	"context"
	"errors"
	"net/http"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/telemetry/histogram"
)

// Exporter is a tracer provider and a meter provider whose spans and numbers go to a
// collector. It is safe for concurrent use. Close it.
type Exporter struct {
	traces  *sdktrace.TracerProvider // nil with NoTraces
	metrics *sdkmetric.MeterProvider // nil with NoMetrics
	meters  metric.MeterProvider     // the same, with its own way to count durations
	client  *http.Client
	ended   context.Context //nolint:containedctx // ends what is being sent, like a closed channel
	end     context.CancelFunc
	reports [2]*reporter
}

// New makes one and starts to collect. It does not wait for the collector. The error
// has all that is wrong with the configuration.
func New(cfg Config) (*Exporter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if text := cfg.clearText(os.Getenv); text != "" && cfg.Logger != nil {
		cfg.Logger.Warn("telemetry without TLS", zap.String("help", text))
	}
	e := &Exporter{client: client(&cfg), reports: [2]*reporter{newReporter("traces", cfg.Logger), newReporter("metrics", cfg.Logger)}}
	e.ended, e.end = context.WithCancel(context.Background())
	who, err := resource.New(context.Background(), resource.WithSchemaURL(resource.Default().SchemaURL()), resource.WithAttributes(resource.Default().Attributes()...),
		resource.WithAttributes(service(cfg.Service)...))
	if err == nil && !cfg.NoTraces {
		err = e.startTraces(&cfg, who)
	}
	if err == nil && !cfg.NoMetrics {
		err = e.startMetrics(&cfg, who)
	}
	if err != nil {
		_ = e.Close(context.Background()) // nothing was measured yet
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "otlp exporter", Err: err, Hint: "check the variables OTEL_…"}
	}
	return e, nil
}

func service(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("service.name", name)}
}

func (e *Exporter) startTraces(cfg *Config, who *resource.Resource) error {
	opts := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(e.client)}
	if at := cfg.at("traces"); at != "" {
		opts = append(opts, otlptracehttp.WithEndpointURL(at))
	}
	out, err := otlptracehttp.New(e.ended, opts...)
	if err != nil {
		return err
	}
	with := []sdktrace.TracerProviderOption{sdktrace.WithResource(who), sdktrace.WithBatcher(spans{out, e})}
	if cfg.Sample > 0 {
		with = append(with, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))))
	}
	e.traces = sdktrace.NewTracerProvider(with...)
	return nil
}

func (e *Exporter) startMetrics(cfg *Config, who *resource.Resource) error {
	opts := []otlpmetrichttp.Option{otlpmetrichttp.WithHTTPClient(e.client)}
	if at := cfg.at("metrics"); at != "" {
		opts = append(opts, otlpmetrichttp.WithEndpointURL(at))
	}
	out, err := otlpmetrichttp.New(e.ended, opts...)
	if err != nil {
		return err
	}
	var every []sdkmetric.PeriodicReaderOption
	if cfg.Interval > 0 {
		every = append(every, sdkmetric.WithInterval(cfg.Interval))
	}
	durations, ours := &histogram.Set{}, plain(out)
	if ours {
		every = append(every, sdkmetric.WithProducer(durations))
	}
	e.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithResource(who), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numbers{out, e}, every...)))
	if e.meters = e.metrics; ours {
		e.meters = durations.Provider(e.metrics)
	}
	return nil
}

// plain tells whether histograms are sent as a histogram.Set has them: the variables of
// OpenTelemetry can ask for others.
func plain(out sdkmetric.Exporter) bool {
	switch out.Aggregation(sdkmetric.InstrumentKindHistogram).(type) {
	case sdkmetric.AggregationDefault, sdkmetric.AggregationExplicitBucketHistogram:
		return out.Temporality(sdkmetric.InstrumentKindHistogram) == metricdata.CumulativeTemporality
	}
	return false
}

// TracerProvider is what telemetry.Config takes, and otel.SetTracerProvider. nil with
// NoTraces.
func (e *Exporter) TracerProvider() trace.TracerProvider {
	if e.traces == nil {
		return nil
	}
	return e.traces
}

// MeterProvider is what telemetry.Config takes, and otel.SetMeterProvider. nil with
// NoMetrics.
func (e *Exporter) MeterProvider() metric.MeterProvider {
	return e.meters
}

// Close sends what is left and ends the providers: what is measured later goes nowhere.
// It takes until ctx ends at the most; the error says that something was not sent by then,
// and the log says why.
func (e *Exporter) Close(ctx context.Context) error {
	cut := context.AfterFunc(ctx, e.end)
	defer cut()
	var errs []error
	if e.metrics != nil {
		errs = append(errs, e.metrics.Shutdown(ctx))
	}
	if e.traces != nil {
		// It would leave its goroutine behind when ctx ends; so each export is cut instead.
		errs = append(errs, e.traces.Shutdown(context.WithoutCancel(ctx)))
	}
	late := ctx.Err()
	e.end()
	e.client.CloseIdleConnections()
	for _, r := range e.reports {
		r.close()
	}
	if errs = append(errs, late); errors.Join(errs...) == nil {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeTimeout, Op: "send the last traces and metrics", Err: errors.Join(errs...), Hint: "see that the collector answers, or give the stop more time"}
}
