// Package prom shows a program's metrics to a Prometheus server: a meter provider
// and the handler of its page.
//
//	page, err := prom.New(prom.Config{})
//	tel := telemetry.New(telemetry.Config{MeterProvider: page.MeterProvider()})
//	server, err := admin.New(admin.Config{Metrics: page.Handler()}) // at /metrics; or any mux of one's own
//
// The names of docs/reference/metrics.md are written in Prometheus' way: dots become
// "_", a unit is appended ("_seconds", "_ratio"), and "_total" to what only grows:
// longshore.delivery.age is longshore_delivery_age_seconds.
package prom
