// Package otlp sends a program's traces and metrics to an OpenTelemetry collector, or to
// any service that speaks its protocol, as protobuf over HTTP:
//
//	out, err := otlp.New(otlp.Config{Endpoint: "http://collector:4318", Service: "orders"})
//	if err != nil {
//		return err
//	}
//	defer out.Close(ctx) // sends what is left
//	tel := telemetry.New(telemetry.Config{TracerProvider: out.TracerProvider(), MeterProvider: out.MeterProvider()})
//
// A collector that is away never fails a handler or a stop: what cannot be sent is a line
// in the log, and once the queue of spans is full the newest are dropped.
package otlp
