package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/internal/gateway"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ofAnna = "the token of anna there" // at the instances
	ofKim  = "the token of kim here"   // at the console
	ofWall = "the token of the wall here"
)

// instance is a real one.
func instance(t *testing.T, permits int) (*container.ListenerContainer, *admin.Server) {
	t.Helper()
	b := memory.New(memory.Config{})
	c, err := container.New(b.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Throttle: throttle.NewPermits(permits), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	return c, server(t, admin.Config{Instance: "same-name", Containers: []*container.ListenerContainer{c}, Operators: map[string]transport.Secret{"anna": transport.Static(ofAnna)}})
}

func server(t *testing.T, cfg admin.Config) *admin.Server {
	t.Helper()
	cfg.Addr, cfg.Logger = "127.0.0.1:0", zap.NewNop()
	a, err := admin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

// console is a gateway behind an admin server of its own.
func console(t *testing.T, targets ...fleet.Target) *client {
	t.Helper()
	g := gateway.New(targets, fleet.Config{Every: 50 * time.Millisecond, Timeout: time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	a := server(t, admin.Config{Around: g.Around, Operators: map[string]transport.Secret{"kim": transport.Static(ofKim)}, Viewers: map[string]transport.Secret{"wall": transport.Static(ofWall)}})
	return &client{t, "http://" + a.Addr(), ofKim}
}

func target(a *admin.Server) fleet.Target {
	return fleet.Target{Name: a.Addr(), Base: "http://" + a.Addr(), Token: transport.Static(ofAnna)}
}

type client struct {
	t           *testing.T
	base, token string
}

func (c *client) do(method, path, body string) (int, map[string]any, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var v map[string]any
	_ = json.Unmarshal(raw, &v)
	return res.StatusCode, v, string(raw)
}

func (c *client) until(what, path string, ok func(raw string) bool) string {
	c.t.Helper()
	raw := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if _, _, raw = c.do("GET", path, ""); ok(raw) {
			return raw
		}
		tick := time.NewTimer(20 * time.Millisecond)
		<-tick.C
	}
	c.t.Fatalf("never %s: %s", what, raw)
	return ""
}

// Two instances that call themselves the same, and one that is not there, are one API.
func TestManyInstancesAreOne(t *testing.T) {
	one, first := instance(t, 5)
	two, second := instance(t, 9)
	c := console(t, target(first), target(second), fleet.Target{Name: "127.0.0.1:1", Base: "http://127.0.0.1:1"})
	raw := c.until("both", "/api/containers", func(raw string) bool {
		return strings.Count(raw, `"name":"orders"`) == 2 && strings.Contains(raw, "connection refused")
	})
	if !strings.Contains(raw, `"instance":"`+first.Addr()+`"`) || !strings.Contains(raw, `"instance":"`+second.Addr()+`"`) || strings.Contains(raw, "same-name") {
		t.Error(raw)
	}
	// A change goes to its instance with that instance's token; the reason says who asked.
	status, v, raw := c.do("POST", "/api/containers/orders/pause?instance="+second.Addr(), `{"reason":"deploy"}`)
	if status != 200 || v["instance"] != second.Addr() || two.State() != container.StatePaused || one.State() != container.StateRunning || !strings.Contains(raw, "deploy (kim at the console)") || !strings.Contains(raw, `"by":"anna"`) {
		t.Errorf("%d %s, %s, %s", status, raw, one.State(), two.State())
	}
	if status, v, _ = c.do("PUT", "/api/containers/orders/workers?instance="+first.Addr(), `{"min":0,"max":0}`); status != 400 || v["code"] != "config" || v["help"] == "" {
		t.Errorf("a refusal: %d %v", status, v)
	}
	for path, want := range map[string]int{"/api/containers/orders/pause": 400, "/api/containers/orders/pause?instance=other": 502, "/api/containers/orders/pause?instance=127.0.0.1:1": 502} {
		if status, v, _ = c.do("POST", path, ""); status != want || v["message"] == "" {
			t.Errorf("%s: %d %v", path, status, v)
		}
	}
	// Totals, a column for each, and what differs.
	raw = c.until("the pause", "/api/compare", func(raw string) bool { return strings.Contains(raw, "not paused") })
	for _, want := range []string{`"what":"permits"`, `"what":"pause"`, `"permits":14`, `"silent"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	if status, _, raw = c.do("GET", "/api/history?seconds=60", ""); status != 200 || strings.Count(raw, `"container":"orders"`) != 2 {
		t.Errorf("%d %.300s", status, raw)
	}
	if status, v, _ = c.do("GET", "/api/containers/orders/inflight?limit=5&instance="+first.Addr(), ""); status != 200 || v["total"] == nil {
		t.Errorf("%d %v", status, v)
	}
	if status, _, raw = c.do("GET", "/", ""); strings.Contains(raw, ofAnna) {
		t.Errorf("a token is on the page: %d", status)
	}
}

// Who may do what is as at the admin API.
func TestAccess(t *testing.T) {
	c1, a := instance(t, 5)
	c := console(t, target(a))
	c.until("it", "/api/containers", func(raw string) bool { return strings.Contains(raw, "orders") })
	c.do("POST", "/api/containers/orders/pause", `{"reason":"secret reason"}`)
	c.until("the pause", "/api/containers", func(raw string) bool { return strings.Contains(raw, "secret reason") })
	for _, row := range []struct {
		token, method, path string
		want                int
		texts               bool
	}{
		{"", "GET", "/api/containers", 200, false}, {"", "GET", "/api/compare", 200, false}, {"", "GET", "/api/history", 200, false},
		{"", "GET", "/api/containers/orders/inflight", 401, false}, {"", "POST", "/api/containers/orders/resume", 401, false}, {"", "GET", "/api/jobs", 401, false},
		{"somebody else's token", "GET", "/api/containers", 401, false}, {ofAnna, "GET", "/api/containers", 401, false},
		{ofWall, "GET", "/api/containers", 200, true}, {ofWall, "GET", "/api/containers/orders/inflight", 200, false}, {ofWall, "POST", "/api/containers/orders/resume", 403, false},
		{ofKim, "POST", "/api/containers/orders/resume", 200, true},
	} {
		x := &client{t, c.base, row.token}
		status, _, raw := x.do(row.method, row.path, "")
		if status != row.want || row.texts != strings.Contains(raw, "at the console") && row.method == "GET" || strings.Contains(raw, ofAnna) {
			t.Errorf("%+v: %d %s", row, status, raw)
		}
	}
	if c1.State() != container.StateRunning {
		t.Error(c1.State())
	}
	// Without a token the console shows of each container what its instance shows.
	c.do("POST", "/api/containers/orders/pause", `{"reason":"secret reason"}`)
	c.do("PUT", "/api/containers/orders/throttle", `{"permits":3,"reason":"secret reason"}`)
	c.until("both", "/api/containers", func(raw string) bool {
		return strings.Contains(raw, `"permits":3`) && strings.Contains(raw, `"paused"`)
	})
	here, there := &client{t, c.base, ""}, &client{t, "http://" + a.Addr(), ""}
	for _, path := range []string{"/api/containers", "/api/history?seconds=5"} {
		_, shown, raw := here.do("GET", path, "")
		_, bare, _ := there.do("GET", path, "")
		if got, want := keysOf(shown["containers"]), keysOf(bare["containers"]); got != want || len(want) < 50 || strings.Contains(raw, "secret") {
			t.Errorf("%s: the console shows\n%s\nthe instance\n%s\n%s", path, got, want, raw)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.base+"/api/containers/orders/pause", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ofKim)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil || res.StatusCode != 403 {
		t.Errorf("a request of another site: %v %v", res, err)
	}
	res.Body.Close()
}

// keysOf are the names in an answer, with those that they are part of.
func keysOf(v any) string {
	all := map[string]bool{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				all[at+name] = true
				walk(at+name+".", x)
			}
		case []any:
			for _, x := range v {
				walk(at, x)
			}
		}
	}
	walk("", v)
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// The stream has everything that the instances stream, and resumes.
func TestStream(t *testing.T) {
	c1, a := instance(t, 5)
	c := console(t, target(a))
	c.until("it", "/api/containers", func(raw string) bool { return strings.Contains(raw, "orders") })
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	open := func(token, after string) (*http.Response, func()) {
		req, err := http.NewRequestWithContext(ctx, "GET", c.base+"/api/events?after="+after, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		return res, func() { _ = res.Body.Close() }
	}
	seen := func(token string, wants ...string) {
		t.Helper()
		res, end := open(token, "0") //nolint:bodyclose // end closes it
		defer end()
		var all bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := res.Body.Read(buf)
			all.Write(buf[:n])
			missing := false
			for _, w := range wants {
				missing = missing || !strings.Contains(all.String(), w)
			}
			if !missing {
				if token == "" && strings.Contains(all.String(), "secret reason") {
					t.Errorf("without a token: %s", all.String())
				}
				return
			}
			if err != nil {
				t.Fatalf("%v; %s", err, all.String())
			}
		}
	}
	c.do("POST", "/api/containers/orders/pause", `{"reason":"secret reason"}`)
	if c1.State() != container.StatePaused {
		t.Fatal(c1.State())
	}
	seen(ofKim, "event: snapshot", "event: points", `"kind":"operator"`, "secret reason (kim at the console)", `"role":"operator"`, `"instances":[`, a.Addr())
	seen("", "event: snapshot", "event: points", `"kind":"operator"`, `"role":"local"`)
}

// An instance that goes is marked, with all that is known of it; when it is back it is not.
func TestAnInstanceThatGoes(t *testing.T) {
	_, a := instance(t, 5)
	_, stays := instance(t, 5)
	c := console(t, target(a), target(stays))
	c.until("both", "/api/containers", func(raw string) bool { return strings.Count(raw, `"name":"orders"`) == 2 })
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	raw := c.until("its silence", "/api/containers", func(raw string) bool { return strings.Contains(raw, "does not answer since") })
	if strings.Count(raw, `"level":"problem"`) != 1 || strings.Count(raw, `"name":"orders"`) != 2 {
		t.Error(raw)
	}
}
