package config

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/memory"
)

// dead_letter.via: what a handler rejects on one broker is confirmed on another one before
// it leaves the first; the publisher outlives the container and is closed behind it.
func TestDeadLettersGoThroughAnotherBroker(t *testing.T) {
	server := amqptest.New(t)
	from := memory.New(memory.Config{})
	c := load(t, Options{Environ: []string{}, Memory: from}, `
brokers:
  m: {url: "mem://"}
  rabbit: {url: "`+server.URL+`"}
containers:
  orders:
    source: {broker: m, queue: orders}
    dead_letter: {to: orders.dlq, via: rabbit}
`)
	dlq := declared(t, server.URL, "orders.dlq")
	rejected := errors.New("never again")
	m, err := c.Manager(Handlers{"orders": longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return longshore.Reject(rejected) })}, Code{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when it is started again
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		publish(t, c, "orders")
		ds, err := dlq.Receive(t.Context(), 1)
		if err != nil || string(ds[0].Body) != "orders" || ds[0].Ack(t.Context()) != nil {
			t.Fatalf("%v %v", ds, err)
		}
		if err := m.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := c.vias["rabbit"].Publish(t.Context(), "orders.dlq", &longshore.Message{}); !errors.Is(err, longshore.ErrClosed) {
			t.Errorf("its publisher is to be closed: %v", err)
		}
	}
	if q := from.Inspect("orders.dlq"); q.Ready != 0 {
		t.Errorf("on the source's own broker: %+v", q)
	}
	if err := dlq.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// declared makes a queue and consumes from it.
func declared(t *testing.T, url, name string) transport.Consumer {
	t.Helper()
	c, err := amqp.New(url, amqp.Config{}).Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}).Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A single container comes without what it shares; Shared has that, in a phase that
// outlives it.
func TestSharedOutlivesContainers(t *testing.T) {
	c := load(t, nowhere(), `
brokers: {m: {url: "mem://"}, k: {url: "kafka://k1:9092"}}
telemetry: {traces: otlp}
containers:
  orders: {source: {broker: m, queue: orders}, dead_letter: {to: orders.dlq, via: k}}
  own: {source: {broker: m, queue: own}, dead_letter: {to: own.dlq, via: m}}
`)
	for name, want := range map[string]bool{"orders": true, "own": false} {
		cfg, err := c.Settings(name, Code{Logger: zap.NewNop()})
		if err != nil || (cfg.DeadLetter.Via != nil) != want {
			t.Errorf("%s: %v %v", name, cfg.DeadLetter, err)
		}
	}
	parts, err := c.Shared(Code{Logger: zap.NewNop()})
	if err != nil || len(parts) != 2 {
		t.Fatalf("%v %v", parts, err)
	}
	for _, p := range parts {
		if ph, ok := p.(lifecycle.Phaser); !ok || ph.Phase() != lifecycle.PhasePublishers {
			t.Errorf("%s is in the phase of containers", p.Name())
		}
		if err := errors.Join(p.Start(t.Context()), p.Stop(t.Context())); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
}

// receiver decodes the names of the spans that it is sent.
type receiver struct {
	mu    sync.Mutex
	spans []string
	keys  map[string]bool
	paths map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths[req.URL.Path]++
	r.keys[req.Header.Get("X-Api-Key")] = true
	var in coltrace.ExportTraceServiceRequest
	if req.URL.Path == "/v1/traces" {
		err = errors.Join(err, proto.Unmarshal(body, &in))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	for _, rs := range in.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				r.spans = append(r.spans, s.GetName())
			}
		}
	}
}

// traces: otlp and metrics: otlp reach a collector by the end of the stop, with the header
// that a reference leads to; a second run of the same file is sent too.
func TestTelemetryReachesACollector(t *testing.T) {
	r := &receiver{keys: map[string]bool{}, paths: map[string]int{}}
	server := httptest.NewServer(r)
	defer server.Close()
	c := load(t, nowhere("OTEL_KEY=a key"), `
telemetry: {metrics: otlp, traces: otlp, otlp: {endpoint: "`+server.URL+`", headers: {x-api-key: env:OTEL_KEY}, service: orders}}
containers: {orders: {source: mem://orders}}
`)
	for range 2 {
		done := make(chan struct{})
		m, err := c.Manager(Handlers{"orders": longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { close(done); return nil })}, Code{Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		publish(t, c, "orders")
		<-done
		if err := m.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spans) != 2 || r.spans[0] != "process orders" || r.paths["/v1/metrics"] < 2 || len(r.keys) != 1 || !r.keys["a key"] {
		t.Errorf("spans %q, paths %v, %d keys", r.spans, r.paths, len(r.keys))
	}
	if text := Format(c.Show(false)); strings.Contains(text, "a key") || !strings.Contains(text, "x-api-key: '***'") {
		t.Errorf("%s", text)
	}
}

// What the code has is on the page of metrics while the containers run.
func TestWhatTheCodeHasIsOnThePage(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), ddl); err != nil {
		t.Fatal(err)
	}
	outbox, err := mutex.NewOutbox(mutex.SQL(db, mutex.SQLite), nil, mutex.OutboxConfig{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, nowhere(), "admin: {listen: \"127.0.0.1:0\"}\ntelemetry: {metrics: prometheus}\ncontainers: {orders: {source: mem://orders}}\n")
	once, err := mutex.New(mutex.SQL(db, mutex.SQLite), mutex.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := throttle.NewFleet(memory.New(memory.Config{}).Broadcast("control", memory.BroadcastConfig{}), throttle.FleetConfig{Scope: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fleet.Stop(context.Background()) }()
	code := Code{Logger: zap.NewNop(), Fleets: map[string]*throttle.Fleet{"prod": fleet}, Outboxes: map[string]*mutex.Outbox{"shop": outbox}, Mutexes: map[string]*mutex.Mutex{"orders": once}}
	parts, err := c.Shared(code)
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v %v", parts, err)
	}
	page := func() string {
		w := httptest.NewRecorder()
		c.meters.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	if err := parts[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{`longshore_outbox_backlog{longshore_outbox="shop"} 0`, `longshore_mutex_outcomes_total{longshore_mutex="orders",outcome="busy"} 0`, `longshore_control_age_seconds{longshore_control="prod"} 0`} {
		if text := page(); !strings.Contains(text, series) {
			t.Errorf("no %s in\n%s", series, text)
		}
	}
	if err := parts[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := page(); strings.Contains(text, "longshore_outbox_backlog{") || strings.Contains(text, "longshore_mutex_outcomes_total{") {
		t.Error("it is still there")
	}
}
