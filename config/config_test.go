package config

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func load(t *testing.T, o Options, text string) *Config {
	t.Helper()
	c, err := o.Parse("longshore.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nothing(context.Context, *longshore.Delivery) error { return nil }

func TestTheReferencePageIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Reference() {
		t.Error("run: go run ./cmd/longshore config reference > docs/reference/configuration.md")
	}
}

// Words may be spelled as a source URL has them, the mechanism also as Kafka does.
func TestWordsInTheirOtherSpellings(t *testing.T) {
	for _, word := range []string{"scram_sha_256", "scram-sha-256", "SCRAM-SHA-256"} {
		c := load(t, nowhere(), `
brokers:
  k: {url: "kafka://app:pw@k1:9092", sasl: {mechanism: `+word+`}}
containers:
  orders: {source: {broker: k, topics: [orders], group: g, isolation: read-uncommitted}, dead_letter: {policy: keep}}
`)
		shown := map[string]string{}
		for _, v := range c.Show(false) {
			shown[strings.Join(v.Path, ".")] = v.Value
		}
		if shown["brokers.k.sasl.mechanism"] != "scram_sha_256" || shown["containers.orders.source.isolation"] != "read_uncommitted" {
			t.Errorf("%s: %v", word, shown)
		}
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	var walk func(typ reflect.Type, path string)
	n := 0
	walk = func(typ reflect.Type, path string) {
		for _, f := range fieldsOf(typ) {
			n++
			if f.key == "" || f.doc == "" || !strings.HasSuffix(f.doc, ".") {
				t.Errorf("%s.%s has no meaning", path, f.key)
			}
			if !strings.Contains(Reference(), f.key+"` |") {
				t.Errorf("%s.%s is not on the page", path, f.key)
			}
			for _, sub := range []reflect.Type{sectionOf(f.typ), f.named()} {
				if sub != nil {
					walk(sub, path+"."+f.key)
				}
			}
		}
	}
	walk(reflect.TypeFor[root](), "")
	if n < 100 {
		t.Errorf("only %d fields", n)
	}
}

func TestTheFilesValuesReachTheContainer(t *testing.T) {
	c := load(t, nowhere(), `
containers:
  orders:
    source: mem://orders
    workers: {min: 2, max: 100}
    autoscale: {hold: 1m}
    order: by_key
    lookahead: none
    max_bytes: 1MiB
    redelivery: {max_attempts: 8, backoff: {initial: 2s, max: 1h, jitter: none}}
    dead_letter: {to: orders.dlq}
    throttle: {permits: 0}
    drain_timeout: none
    stuck: {after: 3m, action: replace}
    start_paused: true
    timeout: 30s
    log_level: error
`)
	once := middleware.Recover()
	got, err := c.Settings("orders", Code{Middleware: []longshore.Middleware{once}, Logger: zap.NewNop(), Adjust: func(name string, c *container.Config) { c.Name = "my " + name }})
	if err != nil {
		t.Fatal(err)
	}
	want := container.Config{Name: "my orders", Workers: container.Workers{Min: 2, Max: 100}, Autoscale: autoscale.Adaptive{Hold: time.Minute}, Lookahead: -1,
		MaxBytes: 1 << 20, Order: container.ByKey, DeadLetter: container.DeadLetter{To: "orders.dlq"}, DrainTimeout: -1, StartPaused: true,
		Redelivery: container.Redelivery{MaxAttempts: 8, Backoff: container.Backoff{Initial: 2 * time.Second, Max: time.Hour, Jitter: -1}},
		Stuck:      container.Stuck{After: 3 * time.Minute, Action: container.StuckReplace}}
	if p, _ := got.Throttle.Limits(); p != 0 {
		t.Errorf("permits %d, want 0", p)
	}
	if len(got.Middleware) != 2 || got.Middleware[0] != once {
		t.Errorf("the code's middleware is to be outside the timeout: %v", got.Middleware)
	}
	got.Throttle, got.Middleware, got.Logger = nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
}

// An empty container says nothing, so that everything is the code's own default.
func TestTheDefaultsAreTheCodes(t *testing.T) {
	got, err := load(t, nowhere(), "containers: {a: {source: mem://a}}").Settings("a", Code{})
	if err != nil {
		t.Fatal(err)
	}
	if p, rate := got.Throttle.Limits(); p >= 0 || rate >= 0 {
		t.Errorf("limits %d %v", p, rate)
	}
	got.Throttle = nil
	if want := (container.Config{Name: "a"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestPrecedenceAndOrigins(t *testing.T) {
	c := load(t, nowhere("LONGSHORE_CONTAINERS_MY_ORDERS_WORKERS_MAX=50", "LONGSHORE_DEFAULTS_TIMEOUT=7s", "LONGSHORE_CONTAINERS_B_SOURCE=mem://elsewhere", "LONGSHORE_ADMIN_HOSTS=a, b"), `
admin: {}
defaults: {workers: {min: 3, max: 20}, timeout: 5s, dead_letter: {policy: keep}, drain_timeout: 4s}
containers:
  my-orders:
    source: mem://orders
    workers: {max: 30}
    dead_letter: {to: dlq}
    drain_timeout: 6s
  b:
    source: "kafka://k1:9092/t?group=g"
`)
	got := map[string]string{}
	for _, v := range c.Show(false) {
		got[strings.Join(v.Path, "/")] = v.Value + " # " + v.Origin
	}
	for path, want := range map[string]string{
		"containers/my-orders/workers/max":        "50 # env LONGSHORE_CONTAINERS_MY_ORDERS_WORKERS_MAX",
		"containers/my-orders/workers/min":        "3 # defaults, longshore.yaml:3",
		"containers/my-orders/timeout":            "7s # env LONGSHORE_DEFAULTS_TIMEOUT",
		"containers/my-orders/dead_letter/to":     "dlq # longshore.yaml:8",
		"containers/my-orders/dead_letter/policy": "",
		"containers/my-orders/drain_timeout":      "6s # longshore.yaml:9",
		"containers/b/workers/max":                "20 # defaults, longshore.yaml:3",
		"containers/b/source":                     "mem://elsewhere # env LONGSHORE_CONTAINERS_B_SOURCE",
		"containers/b/dead_letter/policy":         "keep # defaults, longshore.yaml:3",
		"admin/hosts":                             "[a, b] # env LONGSHORE_ADMIN_HOSTS",
	} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
	if _, ps := nowhere().parse("again.yaml", []byte(Format(c.Show(false))), true); len(ps) > 0 {
		t.Errorf("what is shown cannot be read again: %s\n%s", lines(ps), Format(c.Show(false)))
	}
}

func TestAnchorsMergeKeysAndLists(t *testing.T) {
	c := load(t, nowhere("LONGSHORE_CONTAINERS_B_WORKERS_MAX=9"), `
brokers: {k: {url: "kafka://k1:9092"}}
containers:
  a: &a
    source: {broker: k, group: g, topics: orders}
    workers: &w {max: 4}
    dead_letter: {to: dlt}
  b: {<<: *a, timeout: 5s, workers: *w}
`)
	a, b := c.loader.file.Containers["a"], c.loader.file.Containers["b"]
	if b.Source.Group != "g" || b.Timeout != 5*time.Second || a.Timeout != 0 || b.Workers.Max != 9 || a.Workers.Max != 4 || !reflect.DeepEqual(a.Source.Topics, []string{"orders"}) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestHandlersMustFitTheFile(t *testing.T) {
	c := load(t, nowhere(), "containers: {orders: {source: mem://orders}, audit: {source: mem://audit, batch: {}}}")
	_, err := c.Containers(Handlers{"order": longshore.HandlerFunc(nothing), "audit": longshore.HandlerFunc(nothing)}, Code{})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`no container named "order"; did you mean "orders"?`, `container "orders" has no handler`, `takes single messages; make the handler with config.Batch`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestTheStopFitsWhatIsInTheFile(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"containers: {a: {source: mem://a}}":                                                                  25 * time.Second,
		"admin: {}\ncontainers: {a: {source: mem://a}}":                                                       25 * time.Second,
		"containers: {a: {source: mem://a, drain_timeout: 1m}}":                                               65 * time.Second,
		"lifecycle: {stop_timeout: 2m}\ncontainers: {a: {source: mem://a}}":                                   2 * time.Minute,
		"lifecycle: {stop_timeout: 8s}\ncontainers: {a: {source: mem://a, drain_timeout: 3s, order: by_key}}": 8 * time.Second,
	} {
		c := load(t, nowhere(), text)
		if got := c.Lifecycle().StopTimeout; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if _, err := c.Manager(Handlers{"a": longshore.HandlerFunc(nothing)}, Code{Logger: zap.NewNop()}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Every road to a running service counts the components that the file does not know, and
// names the file's setting where it refuses them.
func TestTheStopFitsWhatIsNotInTheFile(t *testing.T) {
	handlers := Handlers{"a": longshore.HandlerFunc(nothing)}
	slow := func() lifecycle.Component { return slowStop{lifecycle.Hook("relay", lifecycle.PhaseRelays, nil, nil)} }
	for text, want := range map[string]time.Duration{
		"containers: {a: {source: mem://a}}":                                 40 * time.Second,
		"lifecycle: {stop_timeout: 30s}\ncontainers: {a: {source: mem://a}}": 0,
	} {
		c := load(t, nowhere(), text)
		parts, err := c.Components(handlers, Code{Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		for road, make := range map[string]func() (*lifecycle.Manager, error){
			"Manager":   func() (*lifecycle.Manager, error) { return c.Manager(handlers, Code{Logger: zap.NewNop()}, slow()) },
			"Lifecycle": func() (*lifecycle.Manager, error) { return lifecycle.New(c.Lifecycle(), append(parts, slow())...) },
		} {
			m, err := make()
			switch {
			case want == 0:
				if !errors.Is(err, longshore.CodeDrainBudget) || !strings.Contains(err.Error(), "set lifecycle.stop_timeout to 40s") {
					t.Errorf("%s of %s: %v", road, text, err)
				}
			case err != nil || m.StopTimeout() != want:
				t.Errorf("%s of %s: %v", road, text, err)
			}
		}
	}
}

// slowStop is a component with a budget of its own.
type slowStop struct{ lifecycle.Component }

func (slowStop) Phase() int                { return lifecycle.PhaseRelays }
func (slowStop) StopBudget() time.Duration { return 15 * time.Second }

// handled starts m's containers with a handler that counts, publishes, and waits.
func TestManagerRunsTheFile(t *testing.T) {
	broker := memory.New(memory.Config{})
	c := load(t, Options{Environ: []string{"TOKEN=a token of some length"}, Memory: broker}, `
admin: {listen: "127.0.0.1:0", operators: {anna: env:TOKEN}}
telemetry: {metrics: prometheus, traces: otel}
containers:
  orders: {source: mem://orders, breaker: {}, dedupe: {}, decode: true, timeout: 10s, throttle: {permits: 5, per_key: {permits: 1}}}
  batches: {source: mem://batches, batch: {size: 10, linger: 1ms}}
`)
	seen := make(chan string, 2)
	m, err := c.Manager(Handlers{
		"orders":  longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { seen <- string(d.Body); return nil }),
		"batches": Batch(func(_ context.Context, ds []*longshore.Delivery) error { seen <- string(ds[0].Body); return nil }),
	}, Code{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		publish(t, c, name)
	}
	got := map[string]bool{<-seen: true, <-seen: true}
	if !got["orders"] || !got["batches"] {
		t.Errorf("%v", got)
	}
	if err := m.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func publish(t *testing.T, c *Config, name string) { t.Helper(); send(t, c, name, name) }

// send sends to what a container consumes.
func send(t *testing.T, c *Config, name, body string) {
	t.Helper()
	src, err := c.Source(name)
	if err != nil {
		t.Fatal(err)
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("it cannot publish")
	}
	p, self, err := outlet.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), self, &longshore.Message{Body: []byte(body)}); err != nil {
		t.Error(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
