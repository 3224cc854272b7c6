package otlp

import (
	"crypto/tls"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Config of an [Exporter]. The zero value sends everything to a collector on this host.
// What it leaves open the variables of OpenTelemetry say (OTEL_EXPORTER_OTLP_…,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER).
type Config struct {
	// Endpoint is the collector's URL, http or https; /v1/traces and /v1/metrics are
	// appended to its path. Zero: http://localhost:4318.
	Endpoint string
	// Headers go with each request, for a service that wants a key. A secret is asked for
	// each time, so that a changed one is used.
	Headers map[string]transport.Secret
	// Service is the service.name of all that is sent. Zero: unknown_service and the
	// program's name.
	Service string
	// Sample is the share of new traces that are recorded, up to 1; those that come with a
	// message follow the decision of whoever began them. Zero: 1.
	Sample float64
	// Interval is the time between two collections of metrics. Zero: 1 min.
	Interval time.Duration
	// TLS has the authorities and the certificate for an https endpoint. nil: the system's.
	TLS *tls.Config
	// NoTraces and NoMetrics leave one of the two out.
	NoTraces, NoMetrics bool
	// Logger gets a warning for what could not be sent, at most one a minute for each of
	// the two. nil: none.
	Logger *zap.Logger
}

const defaultEndpoint = "http://localhost:4318"

// Check reports all that is wrong, each a *longshore.Error with the code config. It
// contacts nobody.
func (c *Config) Check() error {
	l := &problem.List{Op: "otlp exporter"}
	u := c.checkEndpoint(l)
	if c.TLS != nil && u != nil && u.Scheme == "http" {
		l.Conflict("TLS", nil, "an {Endpoint} that begins with http", "nothing would be encrypted", "write https://, or leave {TLS} out")
	}
	for name, value := range c.Headers {
		switch {
		case !token(name):
			l.Bad("Headers", "use letters, digits and hyphens", "has %.40q, which is not a valid header name", name)
		case value.IsZero():
			l.Required("Headers."+name, "set it{? to transport.Env, File, Static or Func}")
		}
	}
	if !(c.Sample >= 0 && c.Sample <= 1) {
		l.Range("Sample", c.Sample, "more than 0 and at most 1, or 0 for the default, 1")
	}
	if c.Interval < 0 || c.Interval > 0 && c.Interval < time.Second {
		l.Range("Interval", c.Interval, "1s or more, or 0 for the default, 1m")
	}
	if c.NoTraces && c.Sample != 0 {
		l.Conflict("Sample", nil, "{NoTraces}", "no traces are sent", "leave one of them out")
	}
	if c.NoMetrics && c.Interval != 0 {
		l.Conflict("Interval", nil, "{NoMetrics}", "no metrics are collected", "leave one of them out")
	}
	if c.NoTraces && c.NoMetrics {
		l.Conflict("NoTraces", nil, "{NoMetrics}", "nothing would be sent", "leave one of them out")
	}
	return l.Err()
}

// checkEndpoint returns the URL where it can be used. Its text is never shown: somebody
// may have written a password into it.
func (c *Config) checkEndpoint(l *problem.List) *url.URL {
	const form = "write it as http://host:4318 or https://host"
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		l.Bad("Endpoint", form, "is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		l.Bad("Endpoint", form, "is not an http or https URL with a host")
	case u.User != nil:
		l.Bad("Endpoint", "send it as a header: {Headers} with authorization", "has a user or a password in it")
	case u.RawQuery != "" || u.Fragment != "":
		l.Bad("Endpoint", form, "has parameters or a fragment behind its path")
	default:
		return u
	}
	return nil
}

// token tells whether a name is one of HTTP's.
func token(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return name != ""
}

// at is where a signal goes; "" leaves it to the variables of OpenTelemetry.
func (c *Config) at(signal string) string {
	base := c.Endpoint
	if base == "" {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_ENDPOINT"} {
			if os.Getenv(name) != "" {
				return ""
			}
		}
		base = defaultEndpoint
	}
	return strings.TrimSuffix(base, "/") + "/v1/" + signal
}

// clearText warns of headers, which usually hold a key, that go to another host without TLS;
// "" if none do. It never contains the endpoint's path or a header.
func (c *Config) clearText(env func(string) string) string {
	sends := len(c.Headers) > 0
	endpoints := []string{c.Endpoint}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		sends = sends || env(name) != ""
	}
	if c.Endpoint == "" {
		endpoints = []string{env("OTEL_EXPORTER_OTLP_ENDPOINT"), env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")}
	}
	for _, raw := range endpoints {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" || hosts.Loopback(u.Hostname()) {
			continue
		}
		if sends || u.User != nil {
			return "the headers of telemetry go to " + u.Host + " without TLS, and may hold a key: use https"
		}
	}
	return ""
}
