package observe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/otlp"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// conventions are the version that the documentation names.
const conventions = "v1.43.0"

// attributes of a span or a point, as the collector writes them.
type attributes []struct {
	Key   string
	Value map[string]any
}

func (a attributes) get(key string) string {
	for _, one := range a {
		if one.Key == key {
			for _, v := range one.Value {
				return fmt.Sprint(v)
			}
		}
	}
	return ""
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Attributes                          attributes
	Status                              struct{ Code int }
}

type point struct {
	Attributes     attributes
	ExplicitBounds []float64
}

type instrument struct {
	Name, Unit string
	Sum        struct {
		IsMonotonic            bool
		AggregationTemporality int
		DataPoints             []point
	}
	Gauge, Histogram struct{ DataPoints []point }
}

func (i instrument) points() []point {
	return slices.Concat(i.Sum.DataPoints, i.Gauge.DataPoints, i.Histogram.DataPoints)
}

type scoped struct {
	SchemaURL string
	Spans     []span
	Metrics   []instrument
}

// exported is one line of a file.
type exported struct {
	ResourceSpans, ResourceMetrics []struct {
		Resource                 struct{ Attributes attributes }
		ScopeSpans, ScopeMetrics []scoped
	}
}

// collected runs a collector while run sends to it, and returns what it wrote.
func collected(t *testing.T, run func(t *testing.T, endpoint string)) (spans []span, metrics map[string]instrument) {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	files := map[string]any{}
	pipelines := map[string]any{}
	for _, signal := range []string{"traces", "metrics"} {
		files["file/"+signal] = map[string]any{"path": filepath.Join(dir, signal)}
		pipelines[signal] = map[string]any{"receivers": []string{"otlp"}, "exporters": []string{"file/" + signal}}
	}
	config, err := json.Marshal(map[string]any{
		"receivers": map[string]any{"otlp": map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": addr}}}},
		"exporters": files,
		"service":   map[string]any{"pipelines": pipelines, "telemetry": map[string]any{"metrics": map[string]any{"level": "none"}}},
	})
	must(t, err)
	file := filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(file, config, 0o600))
	ok := t.Run("collector", func(t *testing.T) {
		start(t, needed(t, "LONGSHORE_COLLECTOR"), regexp.MustCompile(`(Everything is ready)`), "--config", file)
		run(t, "http://"+addr)
	})
	if !ok {
		t.FailNow()
	}
	metrics = map[string]instrument{}
	for _, signal := range []string{"traces", "metrics"} {
		for _, s := range written(t, filepath.Join(dir, signal)) {
			if !strings.Contains(s.SchemaURL, strings.TrimPrefix(conventions, "v")) {
				t.Errorf("%s: schema %q", signal, s.SchemaURL)
			}
			spans = append(spans, s.Spans...)
			for _, m := range s.Metrics {
				metrics[m.Name] = m // the last collection has everything
			}
		}
	}
	return spans, metrics
}

// written is what a file has; all comes from one service.
func written(t *testing.T, file string) (all []scoped) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e exported
		must(t, json.Unmarshal(lines.Bytes(), &e))
		for _, r := range slices.Concat(e.ResourceSpans, e.ResourceMetrics) {
			if got := r.Resource.Attributes.get("service.name"); got != "orders" {
				t.Errorf("service.name is %q", got)
			}
			all = append(all, slices.Concat(r.ScopeSpans, r.ScopeMetrics)...)
		}
	}
	must(t, lines.Err())
	return all
}

// registry are all attributes of the conventions, from the source of their package.
func registry(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "go.opentelemetry.io/otel/semconv/"+conventions).Output()
	must(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "attribute_group.go"))
	must(t, err)
	all := map[string]bool{"error.type": true}
	for _, m := range regexp.MustCompile(`= attribute\.Key\("([^"]+)"\)`).FindAllStringSubmatch(string(source), -1) {
		all[m[1]] = true
	}
	if len(all) < 500 {
		t.Fatalf("%d attributes", len(all))
	}
	return all
}

// work publishes and consumes on two brokers: what works, what is retried, and what is
// dead-lettered; one publish fails.
func work(t *testing.T, endpoint string) {
	s := newSite(t)
	out, err := otlp.New(otlp.Config{Endpoint: endpoint, Service: "orders"})
	must(t, err)
	tel := telemetry.New(telemetry.Config{TracerProvider: out.TracerProvider(), MeterProvider: out.MeterProvider()})
	p := &program{tel: tel}
	cfg := container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics()}}
	cfg.DeadLetter = container.DeadLetter{To: "orders.dead"}
	orders := made(t, amqp.New(s.rabbit.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), p.handle(s), cfg)
	cfg.DeadLetter = container.DeadLetter{To: "invoices.dead"}
	invoices := made(t, s.kafkaBroker().Group("billing", []string{"invoices"}, kafka.GroupConfig{}), p.handle(s), named(cfg, "invoices"))
	stop, err := tel.Observe(orders, invoices)
	must(t, err)
	for _, c := range []*container.ListenerContainer{orders, invoices} {
		must(t, c.Start(t.Context()))
	}
	pub := s.publishers(t, p)
	must(t, send(t.Context(), pub.orders, "orders", 1, "good"))
	must(t, send(t.Context(), pub.orders, "orders", 1, "again"))
	must(t, send(t.Context(), pub.orders, "orders", 1, "bad"))
	must(t, send(t.Context(), pub.invoices, "invoices", 10, "good"))
	must(t, send(t.Context(), pub.invoices, "invoices", 1, "bad"))
	if err := send(t.Context(), pub.orders, "nowhere", 1, "good"); err == nil {
		t.Error("a queue that does not exist takes messages")
	}
	eventually(t, "all done", func() error {
		if a, b := orders.Stats(), invoices.Stats(); a.Acked+a.Rejected < 3 || b.Acked+b.Rejected < 11 {
			return errors.New("not yet")
		}
		return nil
	})
	must(t, out.MeterProvider().(interface{ ForceFlush(context.Context) error }).ForceFlush(t.Context())) // while they run
	for _, c := range []*container.ListenerContainer{orders, invoices} {
		must(t, c.Stop(t.Context()))
	}
	must(t, out.Close(t.Context()))
	must(t, stop())
}

// What a collector gets is named by the semantic conventions.
func TestACollectorGetsTheConventionsNames(t *testing.T) {
	spans, metrics := collected(t, work)
	known := registry(t)
	checkNames := func(what string, all attributes) {
		for _, a := range all {
			if ours := strings.HasPrefix(a.Key, "longshore."); !ours && !known[a.Key] && !slices.Contains([]string{"verdict", "attempt", "state", "reason", "code", "direction", "outcome"}, a.Key) {
				t.Errorf("%s: the conventions have no %s", what, a.Key)
			}
		}
	}
	byID := map[string]span{}
	for _, s := range spans {
		byID[s.SpanID] = s
	}
	seen := map[string]int{}
	for _, s := range spans {
		checkNames(s.Name, s.Attributes)
		checkSpan(t, s, byID)
		seen[s.Name+" "+s.Attributes.get("messaging.system")]++
	}
	t.Logf("spans: %v", seen)
	for name, n := range map[string]int{"publish orders rabbitmq": 3, "process orders rabbitmq": 4, "publish invoices kafka": 2, "process invoices kafka": 11, "publish nowhere rabbitmq": 1} {
		if seen[name] != n {
			t.Errorf("%d spans %q, not %d", seen[name], name, n)
		}
	}
	t.Logf("metrics: %v", slices.Sorted(maps.Keys(metrics)))
	for name, m := range metrics {
		if strings.HasPrefix(name, "messaging.") == strings.HasPrefix(name, "longshore.") {
			t.Errorf("the name %s", name)
		}
		for _, p := range m.points() {
			checkNames(name, p.Attributes)
			if p.Attributes.get("messaging.system") == "" || p.Attributes.get("messaging.destination.name") == "" {
				t.Errorf("%s: %v", name, p.Attributes)
			}
		}
	}
	checkInstruments(t, metrics)
}

func checkSpan(t *testing.T, s span, all map[string]span) {
	t.Helper()
	operation, dest, _ := strings.Cut(s.Name, " ")
	want := map[string]string{"messaging.operation.name": operation, "messaging.destination.name": dest, "messaging.operation.type": "send"}
	kind := 4 // producer
	if operation == "process" {
		kind, want["messaging.operation.type"] = 5, "process"
		if parent := all[s.ParentSpanID]; parent.TraceID != s.TraceID && s.Attributes.get("messaging.batch.message_count") == "" {
			t.Errorf("%s: the parent is %+v", s.Name, parent)
		}
		if s.Attributes.get("messaging.system") == "kafka" && (s.Attributes.get("messaging.kafka.offset") == "" || s.Attributes.get("messaging.destination.partition.id") == "" || s.Attributes.get("messaging.consumer.group.name") != "billing") {
			t.Errorf("%s: %v", s.Name, s.Attributes)
		}
	}
	for key, value := range want {
		if got := s.Attributes.get(key); got != value {
			t.Errorf("%s: %s is %q, not %q", s.Name, key, got, value)
		}
	}
	if s.Kind != kind || (s.Status.Code == 2) != (s.Attributes.get("error.type") != "") {
		t.Errorf("%s: kind %d, status %d, %v", s.Name, s.Kind, s.Status.Code, s.Attributes)
	}
}

// checkInstruments compares those of the conventions with the package that is made from
// them.
func checkInstruments(t *testing.T, metrics map[string]instrument) {
	t.Helper()
	for _, c := range []interface{ Name() string }{messagingconv.ClientConsumedMessages{}, messagingconv.ClientSentMessages{}, messagingconv.ClientOperationDuration{}, messagingconv.ProcessDuration{}} {
		m, ok := metrics[c.Name()]
		if unit := c.(interface{ Unit() string }).Unit(); !ok || m.Unit != unit {
			t.Errorf("%s: unit %q, not %q", c.Name(), m.Unit, unit)
		}
		_, histogram := c.(interface {
			Inst() metric.Float64Histogram
		})
		if histogram != (len(m.Histogram.DataPoints) > 0) || !histogram && (!m.Sum.IsMonotonic || m.Sum.AggregationTemporality != 2) {
			t.Errorf("%s: %+v", c.Name(), m)
		}
		for _, p := range m.points() {
			if p.Attributes.get("messaging.operation.name") == "" {
				t.Errorf("%s: %v", c.Name(), p.Attributes)
			}
			if histogram && !slices.Equal(p.ExplicitBounds, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}) {
				t.Errorf("%s: bounds %v", c.Name(), p.ExplicitBounds)
			}
		}
	}
	for name := range metrics {
		if strings.HasPrefix(name, "messaging.") && !slices.Contains([]string{"messaging.client.consumed.messages", "messaging.client.sent.messages", "messaging.client.operation.duration", "messaging.process.duration"}, name) {
			t.Errorf("the conventions have no %s", name)
		}
	}
}
