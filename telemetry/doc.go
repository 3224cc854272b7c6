// Package telemetry shows what containers do through OpenTelemetry: metrics and
// traces of each message as middlewares, the gauges of whole containers, and a
// publisher that carries a trace on.
//
//	tel := telemetry.New(telemetry.Config{}) // the global providers
//	c, err := container.New(source, handler, container.Config{
//		Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics()}, // Trace outermost
//	})
//	stop, err := tel.Observe(c)
//
// Names follow OpenTelemetry's semantic conventions for messaging, version 1.43.0,
// which are in development; what they do not have begins with "longshore.". Labels
// are bounded: no keys, no ids, no error texts, only the codes of errors. The list
// is in docs/reference/metrics.md.
package telemetry
