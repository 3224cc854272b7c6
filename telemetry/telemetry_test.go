package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig collects what a Telemetry tells.
type rig struct {
	tel    *telemetry.Telemetry
	reader *sdkmetric.ManualReader
	spans  *tracetest.InMemoryExporter
	tracer trace.Tracer
	broker *memory.Broker
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter(), broker: memory.New(memory.Config{})}
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	t.Cleanup(func() { _, _ = mp.Shutdown(context.Background()), tp.Shutdown(context.Background()) })
	r.tracer = tp.Tracer("test")
	r.tel = telemetry.New(telemetry.Config{MeterProvider: mp, TracerProvider: tp})
	return r
}

func (r *rig) container(t testing.TB, h longshore.HandlerFunc, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	cfg.Logger = zap.NewNop()
	cfg.Middleware = []longshore.Middleware{r.tel.Trace(), r.tel.Metrics()}
	c, err := container.New(r.broker.Queue("orders", memory.QueueConfig{}), h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	return c
}

// points are the collected points as "name{label=value …} value".
func (r *rig) points(t testing.TB) []string {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(name string, labels fmt.Stringer, v any) {
		out = append(out, fmt.Sprintf("%s %v %v", name, labels, v))
	}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, set{p.Attributes.Encoded(encoder{})}, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, set{p.Attributes.Encoded(encoder{})}, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, set{p.Attributes.Encoded(encoder{})}, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, set{p.Attributes.Encoded(encoder{})}, p.Count)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func wantPoint(t *testing.T, points []string, want string) {
	t.Helper()
	if !slices.Contains(points, want) {
		t.Errorf("no point %q in\n%s", want, strings.Join(points, "\n"))
	}
}

func TestMetricsCountWhatBecameOfMessages(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(_ context.Context, d *longshore.Delivery) error {
		switch d.ID {
		case "bad":
			return longshore.Reject(&longshore.Error{Code: longshore.CodeUndecodable, Op: "decode", Err: errors.New("secret text")})
		case "odd":
			return longshore.Discard(errors.New("secret text"))
		}
		return nil
	}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}})
	containertest.PublishMessages(t, c, &longshore.Message{ID: "good", Timestamp: time.Now().Add(-time.Minute)}, &longshore.Message{ID: "bad"}, &longshore.Message{ID: "odd"})
	containertest.WaitIdle(t, c)
	points := r.points(t)
	const source = "messaging.destination.name=orders messaging.system=memory"
	wantPoint(t, points, "longshore.verdicts "+source+" verdict=ack 1")
	wantPoint(t, points, "longshore.verdicts "+source+" verdict=reject 1")
	wantPoint(t, points, "longshore.verdicts "+source+" verdict=discard 1")
	wantPoint(t, points, "longshore.delivery.age "+source+" 1")
	wantPoint(t, points, "messaging.process.duration error.type=undecodable messaging.destination.name=orders messaging.operation.name=process messaging.system=memory 1")
	wantPoint(t, points, "messaging.process.duration error.type=_OTHER messaging.destination.name=orders messaging.operation.name=process messaging.system=memory 1")
	if all := strings.Join(points, "\n"); strings.Contains(all, "secret") || strings.Contains(all, "good") {
		t.Errorf("a text or an id in the labels:\n%s", all)
	}
}

// F-L02: the number of series does not grow with reconnects, errors and keys, and
// those of a stopped container end.
func TestSeriesAreBounded(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(_ context.Context, d *longshore.Delivery) error {
		if d.Attempt == 1 {
			return longshore.Retry(errors.New("failed "+d.ID), time.Millisecond)
		}
		return nil
	}, container.Config{})
	stop, err := r.tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	// series are the names and labels of what is shown, but for that of lost deliveries:
	// whether a drop hits one is chance.
	series := func() []string {
		var out []string
		for _, p := range r.points(t) {
			if name := p[:strings.LastIndexByte(p, ' ')]; !strings.HasSuffix(name, "verdict=lost") {
				out = append(out, name)
			}
		}
		return out
	}
	pass := func(first int) []string {
		for i := first; i < first+50; i++ {
			containertest.PublishMessages(t, c, &longshore.Message{ID: fmt.Sprint(i), Key: fmt.Append(nil, i)})
			if i%10 == 0 {
				r.broker.Drop("orders")
			}
		}
		containertest.WaitIdle(t, c)
		return series()
	}
	if one, two := pass(0), pass(1000); !slices.Equal(one, two) || len(one) < 10 {
		t.Errorf("%q\nthen %q", one, two)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.points(t) {
		if strings.HasPrefix(p, "longshore.container.") && !strings.HasSuffix(p, "state=stopped 1") {
			t.Errorf("still there: %s", p)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestObserveShowsTheContainer(t *testing.T) {
	r := newRig(t)
	running, end := make(chan struct{}), make(chan struct{})
	c := r.container(t, func(context.Context, *longshore.Delivery) error { running <- struct{}{}; <-end; return nil }, container.Config{Workers: container.Workers{Min: 3, Max: 3}})
	stop, err := r.tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	containertest.Publish(t, c, "a")
	<-running
	const labels = "longshore.container=orders messaging.destination.name=orders messaging.system=memory"
	points := r.points(t)
	wantPoint(t, points, "longshore.container.state longshore.container=orders messaging.destination.name=orders messaging.system=memory state=running 1")
	wantPoint(t, points, "longshore.container.workers "+labels+" 3")
	wantPoint(t, points, "longshore.container.inflight "+labels+" 1")
	wantPoint(t, points, "longshore.container.ready "+labels+" 1")
	close(end)
}

// F-L03: one trace from the producer through a retry to the dead letter, and every
// span ends, also that of a panic.
func TestOneTraceFromEndToEnd(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(context.Context, *longshore.Delivery) error { panic("boom") },
		container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}})
	raw, err := r.broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pub := r.tel.Publisher("memory", raw)
	defer func() { _ = pub.Close(context.Background()) }()
	member, err := baggage.NewMember("tenant", "t-1")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	ctx, root := r.tracer.Start(baggage.ContextWithBaggage(t.Context(), bag), "checkout")
	given := &longshore.Message{ID: "o-1"}
	if err := pub.Publish(ctx, "orders", given); err != nil {
		t.Fatal(err)
	}
	root.End()
	if len(given.Headers) != 0 {
		t.Errorf("the caller's message has got headers: %v", given.Headers)
	}
	containertest.WaitIdle(t, c)
	names := map[string]int{}
	for _, s := range r.spans.GetSpans() {
		names[s.Name]++
		if s.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		if s.Name == "process orders" && (s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "panic")) {
			t.Errorf("%s: %+v", s.Name, s.Status)
		}
	}
	if names["checkout"] != 1 || names["publish orders"] != 1 || names["process orders"] != 2 {
		t.Errorf("%v", names)
	}
	look, _ := r.broker.Queue("dead", memory.QueueConfig{}).(transport.Browser)
	dead, _, err := look.Browse(t.Context(), "", 10)
	if err != nil || len(dead) != 1 || !strings.Contains(dead[0].Headers.String("traceparent"), root.SpanContext().TraceID().String()) || dead[0].Headers.String("baggage") != "tenant=t-1" {
		t.Errorf("the dead letter does not carry the trace: %v", dead)
	}
}

// F-L03: of headers that are none.
func TestHeadersThatAreNoContextAreIgnored(t *testing.T) {
	r := newRig(t)
	got := make(chan trace.SpanContext, 1)
	c := r.container(t, func(ctx context.Context, _ *longshore.Delivery) error {
		got <- trace.SpanContextFromContext(ctx)
		return nil
	}, container.Config{})
	containertest.PublishMessages(t, c, &longshore.Message{ID: "o-1", Headers: longshore.Headers{{Name: "traceparent", Value: "rubbish"}, {Name: "baggage", Value: int64(7)}}})
	if sc := <-got; !sc.IsValid() {
		t.Errorf("no span: %v", sc)
	}
	containertest.WaitIdle(t, c)
}

// A batch is one span that links to the producers.
func TestBatchLinksToItsProducers(t *testing.T) {
	r := newRig(t)
	done := make(chan struct{})
	h := longshore.BatchHandlerFunc(func(context.Context, []*longshore.Delivery) error { close(done); return nil })
	c, err := container.NewBatch(r.broker.Queue("orders", memory.QueueConfig{}), h, container.Config{Logger: zap.NewNop(),
		Middleware: []longshore.Middleware{r.tel.Trace(), r.tel.Metrics()}, Batch: container.Batch{Size: 3, Linger: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pub := r.tel.Publisher("memory", raw)
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: "1"}, &longshore.Message{ID: "2"}, &longshore.Message{ID: "3"}); err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	<-done
	containertest.WaitIdle(t, c)
	_ = pub.Close(t.Context())
	for _, s := range r.spans.GetSpans() {
		if s.Name == "process orders" && len(s.Links) != 3 {
			t.Errorf("%d links", len(s.Links))
		}
	}
	wantPoint(t, r.points(t), "longshore.verdicts messaging.destination.name=orders messaging.system=memory verdict=ack 3")
}
