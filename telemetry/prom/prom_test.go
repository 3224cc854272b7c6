package prom_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/prom"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is everything that can be seen of a container that has met everything.
func page(t *testing.T) string {
	t.Helper()
	p, err := prom.New(prom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	tel := telemetry.New(telemetry.Config{MeterProvider: p.MeterProvider()})
	broker := memory.New(memory.Config{})
	limit := throttle.NewPermits(5)
	limit.SetRate(1e6)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		switch d.ID {
		case "again":
			return errors.New("not yet")
		case "bad":
			return longshore.Reject(errors.New("never"))
		}
		return nil
	}), container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics()}, Throttle: limit, DeadLetter: container.DeadLetter{To: "dead"},
		Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}, Reopen: container.Backoff{Initial: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	raw, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pub := tel.Publisher("memory", raw)
	defer func() { _ = pub.Close(context.Background()) }()
	containertest.Start(t, c)
	for _, id := range []string{"good", "again", "bad"} {
		if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: id, Timestamp: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	containertest.WaitIdle(t, c)
	broker.FailSettle(1, errors.New("refused"))
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: "good"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(c.Stats().SettleFailures) > 0 })
	broker.Drop("orders")
	eventually(t, func() bool { st := c.Stats(); return len(st.Reopens) > 0 && st.Ready && !st.BacklogAt.IsZero() })
	running := scrape(t, p.Handler())
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return running + scrape(t, p.Handler())
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not come to that")
		}
	}
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// names are the metrics and the labels of a page, ours only.
func names(text string) (metrics, labels map[string]bool) {
	metrics, labels = map[string]bool{}, map[string]bool{}
	label := regexp.MustCompile(`[{,]([a-z_]+)="`)
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line := s.Text()
		if !strings.HasPrefix(line, "longshore_") && !strings.HasPrefix(line, "messaging_") {
			continue
		}
		metrics[line[:strings.IndexAny(line, "{ ")]] = true
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			labels[m[1]] = true
		}
	}
	return metrics, labels
}

func TestPageDashboardAndPagesAgree(t *testing.T) {
	text := page(t)
	if file := os.Getenv("LONGSHORE_WRITE_PAGE"); file != "" { // for scripts/promql
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	metrics, labels := names(text)
	if len(metrics) < 30 {
		t.Fatalf("only %d metrics:\n%s", len(metrics), text)
	}
	word := regexp.MustCompile(`\b(?:longshore|messaging)_[a-z0-9_]+\b`)
	for _, file := range []string{"dashboard.json", "../../docs/how-to/scale-out.md"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used := word.FindAllString(string(raw), -1)
		for _, name := range used {
			if !metrics[name] && !labels[name] {
				t.Errorf("%s has %s, the page has not; it has %v", file, name, slices.Sorted(maps.Keys(metrics)))
			}
		}
		if len(used) == 0 {
			t.Errorf("%s uses no metric", file)
		}
	}
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range metrics {
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count"); !strings.Contains(string(reference), "`"+base+"`") {
			t.Errorf("docs/reference/metrics.md has no %s", base)
		}
	}
	for _, forbidden := range []string{"otel_scope", "good", "again", "never", "not yet"} {
		if strings.Contains(strings.Join(slices.Sorted(maps.Keys(labels)), " "), forbidden) || strings.Contains(text, `="`+forbidden+`"`) {
			t.Errorf("%q is a label", forbidden)
		}
	}
}

// As `promtool check metrics` looks at a page.
func TestPageIsAsPrometheusWantsIt(t *testing.T) {
	text := page(t)
	first, _, _ := strings.Cut(text, "\n") // several scrapes, one behind the other
	for i, scraped := range strings.Split(text, first)[1:] {
		problems, err := promlint.New(strings.NewReader(first + scraped)).Lint()
		if err != nil {
			t.Fatal(i, err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "longshore_") || strings.HasPrefix(p.Metric, "messaging_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	}
}

// What Grafana wants of a file that it imports: a title, panels with places of their
// own that do not overlap, queries that name the data source of the choice, and
// variables that exist.
func TestDashboardLoads(t *testing.T) {
	raw, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type grid struct{ X, Y, W, H int }
	var d struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name string } }
		Panels        []struct {
			ID          int
			Type, Title string
			GridPos     grid
			Datasource  struct{ UID string }
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil || d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Fatalf("%v, %+v", err, d)
	}
	known := map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range d.Templating.List {
		known[v.Name] = true
	}
	variable := regexp.MustCompile(`\$\{?(\w+)\}?`)
	ids, cells := map[int]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				cell := fmt.Sprint(x, " ", y)
				if cells[cell] != "" || x >= 24 {
					t.Fatalf("%q lies on %q", p.Title, cells[cell])
				}
				cells[cell] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("%q asks nobody: %+v", p.Title, p)
		}
		for _, q := range p.Targets {
			for _, m := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !known[m[1]] {
					t.Errorf("%q: no variable %s", p.Title, m[1])
				}
			}
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || strings.Count(q.Expr, "{") != strings.Count(q.Expr, "}") {
				t.Errorf("%q: %s", p.Title, q.Expr)
			}
		}
	}
}

func TestARegistryOfOnesOwnGetsOursOnly(t *testing.T) {
	reg := prometheus.NewRegistry()
	p, err := prom.New(prom.Config{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	if text := scrape(t, p.Handler()); strings.Contains(text, "go_goroutines") {
		t.Error("the registry has got what is not asked for")
	}
}
