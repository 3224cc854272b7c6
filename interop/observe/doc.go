// Package observe runs what observes a service built on Longshore: a Prometheus server,
// KEDA's scaler and an OpenTelemetry collector, each built from its own source. The
// tests look at what these see while containers are busy, fail, are held and stop:
// `make observe`. It is a module of its own, and so is each of the three, so that nobody
// else needs their source.
package observe
