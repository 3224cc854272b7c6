package otlp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/otlp"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is a real HTTP receiver that decodes what it is sent.
type collector struct {
	mu      sync.Mutex
	spans   []string
	metrics []string
	kinds   []string // of histograms: temporality and how their buckets are
	headers []string // of x-key
	service string
	paths   map[string]int
	answer  func(w http.ResponseWriter) bool // true: it has answered
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.answer != nil && c.answer(w) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not protobuf", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paths == nil {
		c.paths = map[string]int{}
	}
	c.paths[r.URL.Path]++
	c.headers = append(c.headers, r.Header.Get("X-Key"))
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/traces"):
		err = c.traces(body)
	case strings.HasSuffix(r.URL.Path, "/v1/metrics"):
		err = c.numbers(body)
	default:
		err = errors.New("no such path")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
	}
}

func (c *collector) traces(body []byte) error {
	var in coltrace.ExportTraceServiceRequest
	err := proto.Unmarshal(body, &in)
	for _, rs := range in.GetResourceSpans() {
		c.from(rs.GetResource())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				c.spans = append(c.spans, s.GetName())
			}
		}
	}
	return err
}

func (c *collector) numbers(body []byte) error {
	var in colmetrics.ExportMetricsServiceRequest
	err := proto.Unmarshal(body, &in)
	for _, rm := range in.GetResourceMetrics() {
		c.from(rm.GetResource())
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				c.metrics = append(c.metrics, m.GetName())
				if h := m.GetHistogram(); h != nil {
					c.kinds = append(c.kinds, m.GetName()+" "+h.GetAggregationTemporality().String()+" explicit")
				}
				if h := m.GetExponentialHistogram(); h != nil {
					c.kinds = append(c.kinds, m.GetName()+" "+h.GetAggregationTemporality().String()+" exponential")
				}
			}
		}
	}
	return err
}

func (c *collector) from(r *resourcepb.Resource) {
	for _, kv := range r.GetAttributes() {
		if kv.GetKey() == "service.name" {
			c.service = kv.GetValue().GetStringValue()
		}
	}
}

// handle lets a container with telemetry handle one message.
func handle(t *testing.T, out *otlp.Exporter) {
	t.Helper()
	tel := telemetry.New(telemetry.Config{TracerProvider: out.TracerProvider(), MeterProvider: out.MeterProvider()})
	done := make(chan struct{})
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { close(done); return nil })
	c, err := container.New(memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{}), h,
		container.Config{Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.Publish(t, c, "{}")
	<-done
	containertest.WaitIdle(t, c)
}

func TestACollectorGetsTracesAndMetrics(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	key := "first"
	out, err := otlp.New(otlp.Config{Endpoint: server.URL + "/tenant/", Service: "orders-service",
		Headers: map[string]transport.Secret{"x-key": transport.Func("test", func(context.Context) (string, error) { return key, nil })}})
	if err != nil {
		t.Fatal(err)
	}
	handle(t, out)
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 1 || c.spans[0] != "process orders" {
		t.Errorf("spans %q", c.spans)
	}
	if !strings.Contains(strings.Join(c.metrics, " "), "messaging.process.duration") {
		t.Errorf("metrics %q", c.metrics)
	}
	if c.service != "orders-service" || c.paths["/tenant/v1/traces"] != 1 || c.paths["/tenant/v1/metrics"] != 1 {
		t.Errorf("service %q, paths %v", c.service, c.paths)
	}
	for _, h := range c.headers {
		if h != "first" {
			t.Errorf("headers %q", c.headers)
		}
	}
}

// What the variables of OpenTelemetry ask for holds for the histogram of each message
// too, though it is not the SDK's otherwise; and it comes once.
func TestHistogramsAreAsTheVariablesAsk(t *testing.T) {
	const name = "messaging.process.duration "
	for _, tt := range []struct{ variable, value, want string }{
		{"", "", name + "AGGREGATION_TEMPORALITY_CUMULATIVE explicit"},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", name + "AGGREGATION_TEMPORALITY_DELTA explicit"},
		{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram", name + "AGGREGATION_TEMPORALITY_CUMULATIVE exponential"},
	} {
		t.Run(tt.value, func(t *testing.T) {
			if tt.variable != "" {
				t.Setenv(tt.variable, tt.value)
			}
			c := &collector{}
			server := httptest.NewServer(c)
			defer server.Close()
			out, err := otlp.New(otlp.Config{Endpoint: server.URL, NoTraces: true})
			if err != nil {
				t.Fatal(err)
			}
			handle(t, out)
			if err := out.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			var got []string
			for _, k := range c.kinds {
				if strings.HasPrefix(k, name) {
					got = append(got, k)
				}
			}
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestTLSAndOneSignalAlone(t *testing.T) {
	c := &collector{}
	server := httptest.NewTLSServer(c)
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	out, err := otlp.New(otlp.Config{Endpoint: server.URL, NoMetrics: true, Sample: 1, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}})
	if err != nil {
		t.Fatal(err)
	}
	if out.MeterProvider() != nil || out.TracerProvider() == nil {
		t.Error("NoMetrics is no meter provider, and traces stay")
	}
	_, span := out.TracerProvider().Tracer("test").Start(t.Context(), "one")
	span.End()
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 1 || len(c.metrics) != 0 {
		t.Errorf("spans %q, metrics %q", c.spans, c.metrics)
	}
}

// A collector that refuses is a line in the log, with what to do, and nobody's failure.
// The header that it refused is not in it: F-J01.
func TestWhatIsRefusedIsLogged(t *testing.T) {
	for status, want := range map[int]longshore.Code{http.StatusUnauthorized: longshore.CodeAuth, http.StatusNotFound: longshore.CodeNotFound, http.StatusInternalServerError: longshore.CodeUnreachable} {
		server := httptest.NewServer(&collector{answer: func(w http.ResponseWriter) bool { http.Error(w, strings.Repeat("no ", 1000), status); return true }})
		core, logs := observer.New(zapcore.DebugLevel)
		out, err := otlp.New(otlp.Config{Endpoint: server.URL, NoMetrics: true, Logger: zap.New(core), Headers: map[string]transport.Secret{"authorization": transport.Static("s3cr3t")}})
		if err != nil {
			t.Fatal(err)
		}
		_, span := out.TracerProvider().Tracer("test").Start(t.Context(), "one")
		span.End()
		if err := out.Close(t.Context()); err != nil {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
		all := logs.All()
		if len(all) != 1 || all[0].Message != "telemetry not sent" {
			t.Fatalf("%d: %v", status, all)
		}
		f := all[0].ContextMap()
		text, _ := f["error"].(string)
		if f["code"] != string(want) || f["help"] == "" || strings.Contains(text, "s3cr3t") || len(text) > 310 {
			t.Errorf("%d: %v", status, f)
		}
	}
}

// A collector that never answers holds up a stop for its own time and no longer, and
// nothing stays behind.
func TestCloseIsBoundedByItsContext(t *testing.T) {
	asked, free := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(&collector{answer: func(http.ResponseWriter) bool { asked <- struct{}{}; <-free; return true }})
	defer server.Close()
	defer close(free)
	core, logs := observer.New(zapcore.DebugLevel)
	out, err := otlp.New(otlp.Config{Endpoint: server.URL, NoMetrics: true, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := out.TracerProvider().Tracer("test").Start(t.Context(), "one")
	span.End()
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() { closed <- out.Close(ctx) }()
	<-asked
	cancel()
	select {
	case err := <-closed:
		if !errors.Is(err, longshore.CodeTimeout) {
			t.Errorf("%v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Close does not obey its context")
	}
	if logs.Len() != 1 {
		t.Errorf("%v", logs.All())
	}
}

func TestAllMistakesOfAConfiguration(t *testing.T) {
	_, err := otlp.New(otlp.Config{Endpoint: "http://u:s3cr3t@h", Headers: map[string]transport.Secret{"a b": transport.Static("x"), "empty": {}},
		Sample: 2, Interval: time.Millisecond, NoTraces: true, NoMetrics: true})
	for _, want := range []string{"user or a password", `"a b"`, "Headers.empty", "Sample is 2", "Interval is 1ms", "Sample does not go with NoTraces",
		"Interval does not go with NoMetrics", "NoTraces does not go with NoMetrics"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if err == nil || !errors.Is(err, longshore.CodeConfig) || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v", err)
	}
	for _, endpoint := range []string{"collector:4318", "ftp://h", "http://", "http://h/?a=b", "http://%zz"} {
		if _, err := otlp.New(otlp.Config{Endpoint: endpoint}); !errors.Is(err, longshore.CodeConfig) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if err := (&otlp.Config{Endpoint: "http://h", TLS: &tls.Config{MinVersion: tls.VersionTLS12}}).Check(); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("TLS without https: %v", err)
	}
}
