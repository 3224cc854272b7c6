package config

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/otlp"
	"github.com/longshore-go/longshore/telemetry/prom"
	"github.com/longshore-go/longshore/transport"
)

// telemetrySection says where metrics and traces go, for all containers of the file.
type telemetrySection struct {
	Metrics string       `key:"metrics" oneof:"prometheus|otel|otlp" def:"none" doc:"prometheus: /metrics of the admin API; otel: the process's meter provider; otlp: a collector."`
	Traces  string       `key:"traces" oneof:"otel|otlp" def:"none" doc:"otel: the process's tracer provider; otlp: a collector."`
	OTLP    *otlpSection `key:"otlp" doc:"The collector, by protobuf over HTTP."`
}

// otlpSection is the collector. What is left out comes from OpenTelemetry's own variables.
type otlpSection struct {
	Endpoint string            `key:"endpoint" def:"OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318" like:"https://otel.internal:4318" doc:"URL without /v1/traces and /v1/metrics."`
	Headers  map[string]secret `key:"headers" like:"{x-api-key: env:OTEL_KEY}" doc:"Headers of each request."`
	Service  string            `key:"service" def:"OTEL_SERVICE_NAME, else unknown_service and the program's name" like:"orders" doc:"The attribute service.name."`
	Sample   float64           `key:"sample" def:"1" like:"0.1" doc:"Share of new traces that are recorded. Traces that come with a message keep their decision."`
	Interval time.Duration     `key:"interval" def:"1m" doc:"Time between two collections of metrics."`
	TLS      *tlsSection       `key:"tls" doc:"Certificates for an https endpoint: the keys of tls of a broker."`
}

// flushLimit is how long the last traces and metrics may hold up a stop, where it has
// that much time left.
const flushLimit = 3 * time.Second

// meters are what the telemetry section says, for all containers.
type meters struct {
	page *prom.Page   // nil without prometheus
	otlp *otlp.Config // nil if nothing goes there
	said telemetrySection

	mu   sync.Mutex
	live *live // from the first container on until the component has stopped
}

// live is its running part.
type live struct {
	*telemetry.Telemetry
	out         *otlp.Exporter
	middlewares []longshore.Middleware
}

// makeMeters takes the section apart, and reports mistakes in it. Nothing is
// collected yet.
func (t *trial) makeMeters() {
	l := t.loader
	s := l.file.Telemetry
	out := l.otlp(&s)
	// After otlp above, which also reports an otlp section that nothing uses.
	if s.Metrics == "" && s.Traces == "" {
		return
	}
	m := &meters{said: s, otlp: out}
	if s.Metrics == "prometheus" {
		if l.file.Admin == nil && !l.broken["admin"] {
			at := joinAll("telemetry", "metrics")
			l.report(l.place(at), Problem{Code: CodeMissing, Path: at, Text: "metrics are to be served by the admin API, and there is none", Hint: "add admin: {}"})
		}
		page, err := prom.New(prom.Config{})
		if err != nil {
			l.blame("telemetry", joinAll("telemetry", "metrics"), err)
			return
		}
		m.page = page
	}
	t.made.meters = m
}

// otlp makes the exporter's configuration; nil if nothing goes there.
func (l *loader) otlp(s *telemetrySection) *otlp.Config {
	path := joinAll("telemetry", "otlp")
	o := s.OTLP
	if o == nil {
		o = &otlpSection{}
	}
	// A key that has no effect is a mistake: its author believes that it has.
	alone := func(key, text, hint string) {
		if at := join(path, key); l.has(at) {
			l.report(l.spotOfEntry(l.at[at]), Problem{Code: CodeOutOfRange, Path: at, Text: text, Hint: hint})
		}
	}
	cfg := &otlp.Config{NoTraces: s.Traces != "otlp", NoMetrics: s.Metrics != "otlp", Endpoint: o.Endpoint, Service: o.Service}
	if cfg.NoTraces && cfg.NoMetrics {
		if s.OTLP != nil && !l.brokenBelow("telemetry") {
			l.report(l.spotOf(l.at[path].key), Problem{Code: CodeMissing, Path: path, Text: "nothing is sent to telemetry.otlp", Hint: "add traces: otlp, metrics: otlp or both, or leave otlp out"})
		}
		return nil
	}
	if cfg.Sample = o.Sample; cfg.NoTraces {
		cfg.Sample = 0
		alone("sample", "sample does not go with traces that are not sent by otlp", "set traces: otlp, or leave sample out")
	}
	if cfg.Interval = o.Interval; cfg.NoMetrics {
		cfg.Interval = 0
		alone("interval", "interval does not go with metrics that are not sent by otlp", "set metrics: otlp, or leave interval out")
	}
	for name, from := range o.Headers {
		if cfg.Headers == nil {
			cfg.Headers = map[string]transport.Secret{}
		}
		if !from.IsZero() { // else that is told
			cfg.Headers[name] = from.Secret
		}
	}
	var err error
	cfg.TLS, err = l.tls(o.TLS)
	l.blame(path, path, errors.Join(err, cfg.Check()))
	return cfg
}

// use begins, where nobody has, and gives what is at work.
func (m *meters) use(log *zap.Logger) (*live, error) {
	if m == nil {
		return &live{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live != nil {
		return m.live, nil
	}
	made := &live{}
	var cfg telemetry.Config
	if m.page != nil {
		cfg.MeterProvider = m.page.MeterProvider()
	}
	if m.otlp != nil {
		to := *m.otlp
		if to.Logger = log; log == nil {
			to.Logger = logs.Stderr(zapcore.WarnLevel)
		}
		out, err := otlp.New(to)
		if err != nil {
			return nil, err
		}
		made.out = out
		if p := out.TracerProvider(); p != nil {
			cfg.TracerProvider = p
		}
		if p := out.MeterProvider(); p != nil {
			cfg.MeterProvider = p
		}
	}
	made.Telemetry = telemetry.New(cfg)
	if m.said.Traces != "" {
		made.middlewares = append(made.middlewares, made.Trace())
	}
	if m.said.Metrics != "" {
		made.middlewares = append(made.middlewares, made.Telemetry.Metrics())
	}
	m.live = made
	return made, nil
}

// handler is the page for the admin API.
func (m *meters) handler() http.Handler {
	if m == nil || m.page == nil {
		return nil
	}
	return m.page.Handler()
}

// component shows the gauges of containers and outboxes as long as they run, and sends
// what is left when they have stopped; nil if there is nothing to do.
func (m *meters) component(cs []*container.ListenerContainer, code Code) (lifecycle.Component, error) {
	if m == nil || m.said.Metrics == "" && m.otlp == nil {
		return nil, nil
	}
	at, err := m.use(code.Logger)
	if err != nil {
		return nil, err
	}
	phase := lifecycle.PhaseAdmin
	if m.otlp != nil {
		phase = lifecycle.PhasePublishers // behind the last relay, before the outbox's pool is closed
	}
	var stops []func() error
	return lifecycle.Hook("telemetry", phase,
		func(context.Context) (err error) {
			if m.said.Metrics != "" {
				stops, err = at.observe(cs, code)
			}
			return err
		},
		func(ctx context.Context) error {
			m.close(ctx, at) // with the gauges, for the last time
			var errs []error
			for _, stop := range stops {
				errs = append(errs, stop())
			}
			stops = nil
			return errors.Join(errs...)
		}), nil
}

// observe begins with the gauges. What has begun before an error is returned too.
func (a *live) observe(cs []*container.ListenerContainer, code Code) (stops []func() error, err error) {
	add := func(stop func() error, failed error) {
		if failed == nil {
			stops = append(stops, stop)
		}
		err = errors.Join(err, failed)
	}
	if len(cs) > 0 {
		add(a.Observe(cs...))
	}
	for name, outbox := range code.Outboxes {
		add(a.ObserveOutbox(name, func(ctx context.Context) (telemetry.Backlog, error) {
			b, err := outbox.Backlog(ctx)
			return telemetry.Backlog(b), err
		}))
	}
	for name, m := range code.Mutexes {
		add(a.ObserveMutex(name, func() telemetry.MutexStats { return telemetry.MutexStats(m.Stats()) }))
	}
	for name, fleet := range code.Fleets {
		add(a.ObserveControl(name, func() (bool, time.Time) {
			s := fleet.Status()
			return s.Connected, s.Since
		}))
	}
	return stops, err
}

// close sends the rest. Who makes containers after it begins again.
func (m *meters) close(ctx context.Context, a *live) {
	m.mu.Lock()
	if m.live == a {
		m.live = nil
	}
	m.mu.Unlock()
	if a.out != nil {
		ctx, cancel := context.WithTimeout(ctx, flushLimit)
		defer cancel()
		_ = a.out.Close(ctx) // the log has why
	}
}
