package config

import (
	"context"
	"net/http"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/prom"
)

type telemetrySection struct {
	Metrics string `key:"metrics" oneof:"prometheus|otel" def:"none" doc:"prometheus is a page at /metrics of the admin API, otel the process's OpenTelemetry meter provider."`
	Traces  string `key:"traces" oneof:"otel" def:"none" doc:"Spans through the process's OpenTelemetry tracer provider."`
}

// meters are what the telemetry section makes, once for all containers.
type meters struct {
	*telemetry.Telemetry
	page        *prom.Page // nil without prometheus
	middlewares []longshore.Middleware
}

// meters makes them, or tells what is missing.
func (c *Config) makeMeters() {
	l := c.loader
	s := l.file.Telemetry
	if s.Metrics == "" && s.Traces == "" {
		return
	}
	m := &meters{}
	var cfg telemetry.Config
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
		m.page, cfg.MeterProvider = page, page.MeterProvider()
	}
	m.Telemetry = telemetry.New(cfg)
	if s.Traces != "" {
		m.middlewares = append(m.middlewares, m.Trace())
	}
	if s.Metrics != "" {
		m.middlewares = append(m.middlewares, m.Telemetry.Metrics())
	}
	c.meters = m
}

// handler is the page for the admin API.
func (m *meters) handler() http.Handler {
	if m == nil || m.page == nil {
		return nil
	}
	return m.page.Handler()
}

// around are the outermost middlewares of each container.
func (m *meters) around() []longshore.Middleware {
	if m == nil {
		return nil
	}
	return m.middlewares
}

// watch shows the gauges of containers as long as they run.
func (m *meters) watch(cs []*container.ListenerContainer) lifecycle.Component {
	var stop func() error
	return lifecycle.Hook("telemetry", lifecycle.PhaseAdmin,
		func(context.Context) (err error) {
			stop, err = m.Observe(cs...)
			return err
		},
		func(context.Context) error {
			if stop == nil {
				return nil
			}
			return stop()
		})
}
