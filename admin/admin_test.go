package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ lifecycle.Component = (*admin.Server)(nil)

const (
	annas = "anna's token, long enough"
	walls = "the wall's token, long enough"
)

// service is a container with an admin server.
type service struct {
	t     *testing.T
	c     *container.ListenerContainer
	limit *throttle.Limiter
	a     *admin.Server
	token string
	file  string
}

func serve(t *testing.T, cfg admin.Config) *service {
	t.Helper()
	s := &service{t: t, limit: throttle.NewPermits(20), token: annas}
	b := memory.New(memory.Config{})
	c, err := container.New(b.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Throttle: s.limit, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s.c = c
	containertest.Start(t, c)
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	cfg.Containers = append(cfg.Containers, c)
	if cfg.TokenFile == "" {
		cfg.TokenFile = filepath.Join(t.TempDir(), "run", "token")
	}
	s.file = cfg.TokenFile
	s.a, err = admin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.a.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func operators() admin.Config {
	return admin.Config{Operators: map[string]transport.Secret{"anna": transport.Static(annas)}, Viewers: map[string]transport.Secret{"wall": transport.Static(walls)}}
}

// ask makes a request; edit may change it.
func (s *service) ask(method, path, body string, edit ...func(*http.Request)) (status int, answer map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.a.Addr()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	for _, e := range edit {
		e(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		s.t.Fatalf("%s %s: %d %q is no JSON", method, path, res.StatusCode, raw)
	}
	return res.StatusCode, answer
}

func (s *service) wants(status int, method, path, body string, edit ...func(*http.Request)) map[string]any {
	s.t.Helper()
	got, answer := s.ask(method, path, body, edit...)
	if got != status {
		s.t.Errorf("%s %s %s: %d %v, want %d", method, path, body, got, answer, status)
	}
	if got >= 400 && (answer["code"] == nil || answer["message"] == nil) && !strings.HasPrefix(path, "/health") {
		s.t.Errorf("%s %s: an error without code or message: %v", method, path, answer)
	}
	return answer
}

// in follows names into an answer.
func in(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

const orders = "/api/containers/orders"

// changes are all changing calls, with bodies that would work.
func changes() map[string]string {
	return map[string]string{
		"POST " + orders + "/pause": "", "POST " + orders + "/resume": "", "POST " + orders + "/drain": "",
		"PUT " + orders + "/workers": `{"min":2,"max":3}`, "PUT " + orders + "/throttle": `{"permits":1}`,
		"POST " + orders + "/records/retry-now": `{"record":"a"}`, "POST " + orders + "/records/dead-letter": `{"record":"a"}`,
		"POST " + orders + "/records/release": `{"record":"a"}`, "POST " + orders + "/seek": `{"start":true}`,
	}
}

// F-J05: only loopback listens; every change needs an operator's token, on loopback
// too; no GET changes anything; no profiling; foreign hosts and sites are refused.
func TestClosedByDefault(t *testing.T) {
	s := serve(t, admin.Config{})
	host, port, err := net.SplitHostPort(s.a.Addr())
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("listens at %s", s.a.Addr())
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && !ip.IsLoopback() && ip.To4() != nil {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(ip.String(), port))
			if err == nil {
				_ = conn.Close()
				t.Errorf("%s answers too", ip)
			}
		}
	}
	before := s.limit.State()
	for _, token := range []string{"", "wrong", strings.Repeat("x", 26)} {
		s.token = token
		for call, body := range changes() {
			method, path, _ := strings.Cut(call, " ")
			s.wants(http.StatusUnauthorized, method, path, body)
		}
	}
	raw, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v, %v", info.Mode(), err)
	}
	s.token = strings.TrimSpace(string(raw))
	for call := range changes() {
		_, path, _ := strings.Cut(call, " ")
		s.wants(http.StatusNotFound, http.MethodGet, path, "")
	}
	for _, path := range []string{"/debug/pprof/", "/debug/vars", "/metrics", "/consoles"} {
		s.wants(http.StatusNotFound, http.MethodGet, path, "")
	}
	for name, edit := range map[string]func(*http.Request){
		"foreign host": func(r *http.Request) { r.Host = "evil.example:" + port },
		"other site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"other origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		for call, body := range changes() {
			method, path, _ := strings.Cut(call, " ")
			if got, _ := s.ask(method, path, body, edit); got != http.StatusForbidden {
				t.Errorf("%s: %s: %d", name, call, got)
			}
		}
	}
	s.wants(http.StatusForbidden, http.MethodGet, "/api/containers", "", func(r *http.Request) { r.Host = "rebound.example" })
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	s.wants(http.StatusUnsupportedMediaType, http.MethodPut, orders+"/throttle", "permits=0", form)
	if st := s.limit.State(); st != before && (st.Permits != 20 || st.Operator != nil) || s.c.State() != container.StateRunning || s.c.Stats().Max != 10 {
		t.Errorf("something was changed: %+v, %s", st, s.c.State())
	}
	// With the token of the file it works, and without any the state can be seen.
	s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"permits":1}`)
	s.token = ""
	s.wants(http.StatusOK, http.MethodGet, orders, "")
}

// A pod's address without operators: probes and metrics for all, the made token for this
// host alone.
func TestPodAddressWithoutOperators(t *testing.T) {
	s := serve(t, admin.Config{Addr: "0.0.0.0:0", Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })})
	_, port, _ := net.SplitHostPort(s.a.Addr())
	local := func(r *http.Request) { r.URL.Host, r.Host = "127.0.0.1:"+port, "" }
	remote := func(r *http.Request) { // by a proxy, for a peer on another host
		local(r)
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
	}
	made, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(made))
	s.wants(http.StatusOK, http.MethodGet, "/api/containers", "", local)
	s.wants(http.StatusOK, http.MethodPost, orders+"/pause", "", local)
	for _, path := range []string{"/api/containers", orders, "/api/events"} {
		s.wants(http.StatusUnauthorized, http.MethodGet, path, "", remote)
	}
	s.wants(http.StatusUnauthorized, http.MethodPost, orders+"/resume", "", remote)
	s.token = ""
	s.wants(http.StatusOK, http.MethodGet, "/health/live", "", remote)
	s.wants(http.StatusOK, http.MethodGet, "/metrics", "", remote)
	s.wants(http.StatusOK, http.MethodGet, "/health/live", "", func(r *http.Request) { local(r); r.Host = "orders.shop.svc.cluster.local" })
	s.wants(http.StatusForbidden, http.MethodGet, "/api/containers", "", func(r *http.Request) { local(r); r.Host = "evil.example" })
}

// Off loopback looking needs a token too.
func TestOffLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:99999", "127.0.0.1:-1", "localhost:x y"} {
		if _, err := admin.New(admin.Config{Addr: addr}); err == nil || !strings.Contains(err.Error(), "port") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "127.0.0.1:0", "localhost:0", "[::1]:0"} {
		if _, err := admin.New(admin.Config{Addr: addr}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	cfg := operators()
	cfg.Addr = "0.0.0.0:0"
	s := serve(t, cfg)
	_, port, _ := net.SplitHostPort(s.a.Addr())
	here := func(r *http.Request) { // by a proxy, for a peer on another host
		r.URL.Host, r.Host = "127.0.0.1:"+port, ""
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
	}
	s.token = ""
	for _, path := range []string{"/api/containers", orders, "/api/events", "/api/openapi.json", "/nothing"} {
		s.wants(http.StatusUnauthorized, http.MethodGet, path, "", here)
	}
	s.wants(http.StatusOK, http.MethodGet, "/health/live", "", here)
	s.token = walls
	s.wants(http.StatusOK, http.MethodGet, orders, "", here)
	s.wants(http.StatusForbidden, http.MethodPost, orders+"/pause", "", here)
	if _, err := os.Stat(s.file); err == nil {
		t.Error("a token was made although there are operators")
	}
	short := operators()
	short.Operators["bob"] = transport.Static("short")
	a, err := admin.New(short)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short token: %v", err)
	}
}

// Every verb does what it says, tells before and after, and leaves an event with
// who and why.
func TestVerbs(t *testing.T) {
	s := serve(t, operators())
	events := s.stream("")
	a := s.wants(http.StatusOK, http.MethodPost, orders+"/pause", `{"reason":"ledger down"}`)
	if a["state"] != "paused" || in(a, "paused", "by") != "anna" {
		t.Errorf("pause: %v", a)
	}
	s.wants(http.StatusOK, http.MethodGet, "/health/ready/orders", "")
	if a = s.wants(http.StatusOK, http.MethodPost, orders+"/resume", ""); a["state"] != "running" || a["paused"] != nil || a["before"] != "paused" {
		t.Errorf("resume: %v", a)
	}
	s.wants(http.StatusOK, http.MethodPut, orders+"/workers", `{"max":50}`)
	if st := s.c.Stats(); st.Min != 1 || st.Max != 50 {
		t.Errorf("scaled to %d..%d", st.Min, st.Max)
	}
	for _, body := range []string{`{"min":0}`, `{"min":60}`, `{"min":-1}`, `{"max":9999999999}`, `{"maximum":3}`, `{"max":1.5}`, `[]`, `{}{}`, "{"} {
		s.wants(http.StatusBadRequest, http.MethodPut, orders+"/workers", body)
	}
	a = s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"permits":0,"for":"10m","reason":"ledger down"}`)
	if st := s.limit.State(); st.Permits != 0 || st.Operator.By != "anna" || st.Operator.Reason != "ledger down" || time.Until(st.Operator.Until) < 9*time.Minute || in(a, "before", "permits") != 20.0 {
		t.Errorf("throttled: %+v, %v", st, a)
	}
	s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"add":3}`)
	s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"rate":5}`)
	if n, rate := s.limit.Limits(); n != 3 || rate != 5 {
		t.Errorf("%d permits, rate %v", n, rate)
	}
	s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"clear":true}`)
	if n, rate := s.limit.Limits(); n != 20 || rate != -1 {
		t.Errorf("%d permits, rate %v", n, rate)
	}
	for _, body := range []string{`{}`, `{"permits":-1}`, `{"rate":-0.1}`, `{"permits":1,"clear":true}`, `{"permits":1,"add":1}`, `{"permits":1,"for":"soon"}`,
		`{"permits":1,"for":"-1s"}`, `{"permits":1,"scope":"world"}`, `{"permits":1,"share":"total"}`, `{"permits":1e400}`} {
		s.wants(http.StatusBadRequest, http.MethodPut, orders+"/throttle", body)
	}
	s.wants(http.StatusConflict, http.MethodPut, orders+"/throttle", `{"permits":1,"scope":"fleet"}`)
	s.wants(http.StatusNotFound, http.MethodGet, "/api/fleet", "")
	s.wants(http.StatusNotFound, http.MethodGet, "/api/containers/nothing", "")
	s.wants(http.StatusRequestEntityTooLarge, http.MethodPost, orders+"/pause", `{"reason":"`+strings.Repeat("x", 1<<17)+`"}`)
	if a = s.wants(http.StatusOK, http.MethodPost, orders+"/drain", ""); a["clean"] != true || s.c.State() != container.StateStopped {
		t.Errorf("drain: %v", a)
	}
	s.wants(http.StatusConflict, http.MethodPost, orders+"/resume", "")
	s.wants(http.StatusServiceUnavailable, http.MethodGet, "/health/ready", "")
	s.wants(http.StatusOK, http.MethodGet, "/health/live", "")
	var did []string
	for e := range events {
		if e.Kind == "operator" {
			did = append(did, e.By+" "+e.Text+" "+e.Reason)
		}
		if e.Kind == string(container.EventDrained) {
			break
		}
	}
	for _, want := range []string{"anna paused ledger down", "anna workers 1..10 → 1..50 ", "anna throttle permits 0 for 10m ledger down"} {
		if !slices.Contains(did, want) {
			t.Errorf("%q is not among the events %q", want, did)
		}
	}
}

// stream reads events until the test ends.
func (s *service) stream(last string) <-chan admin.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.a.Addr()+"/api/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	if s.token != "" { // a stream without one has no texts
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "event: snapshot" || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream begins with %q", lines.Text())
	}
	ch := make(chan admin.Event, 1000)
	go func() {
		defer close(ch)
		defer res.Body.Close()
		kind := ""
		for lines.Scan() {
			if k, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
				kind = string(k)
			}
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok || kind != "event" {
				continue
			}
			var e admin.Event
			if json.Unmarshal(data, &e) == nil {
				ch <- e
			}
		}
	}()
	return ch
}

// A stream that resumes misses nothing.
func TestStreamResumes(t *testing.T) {
	s := serve(t, operators())
	first := s.stream("")
	s.wants(http.StatusOK, http.MethodPost, orders+"/pause", `{"reason":"one"}`)
	var at admin.Event
	for at = range first {
		if at.Reason == "one" {
			break
		}
	}
	s.wants(http.StatusOK, http.MethodPost, orders+"/pause", `{"reason":"two"}`)
	s.wants(http.StatusOK, http.MethodPost, orders+"/pause", `{"reason":"three"}`)
	var got []string
	for e := range s.stream(fmt.Sprint(at.ID)) {
		if e.Kind == "operator" {
			got = append(got, e.Reason)
		}
		if e.Reason == "three" {
			break
		}
	}
	if fmt.Sprint(got) != "[two three]" {
		t.Errorf("resumed with %v", got)
	}
}

// Every route is described, and nothing else is.
func TestDescription(t *testing.T) {
	s := serve(t, operators())
	doc := s.wants(http.StatusOK, http.MethodGet, "/api/openapi.json", "")
	described := 0
	paths, _ := doc["paths"].(map[string]any)
	for path, v := range paths {
		methods, _ := v.(map[string]any)
		for method := range methods {
			described++
			got, answer := s.ask(strings.ToUpper(method), strings.NewReplacer("{name}", "nobody", "{id}", "none").Replace(path), "", func(r *http.Request) {
				if path == "/api/events" {
					r.Host = "foreign.example" // it would never end
				}
			})
			if got == http.StatusNotFound && strings.Contains(fmt.Sprint(answer["message"]), "unknown "+strings.ToUpper(method)) {
				t.Errorf("%s %s is described and not there", method, path)
			}
		}
	}
	if described != admin.Routes(s.a) {
		t.Errorf("%d routes are described, %d are there", described, admin.Routes(s.a))
	}
}

// A change of the whole fleet goes through the control topic and says who obeyed.
func TestFleetThrottle(t *testing.T) {
	b := memory.New(memory.Config{})
	src := b.Broadcast("control", memory.BroadcastConfig{Retain: true})
	f, err := throttle.NewFleet(src, throttle.FleetConfig{Instance: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := operators()
	cfg.Fleet = f
	s := serve(t, cfg)
	f.Add("orders", s.limit)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Stop(context.Background()) }()
	a := s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"permits":4,"scope":"fleet","reason":"month end"}`)
	if st := s.limit.State(); st.Permits != 4 || st.Fleet.By != "anna" || fmt.Sprint(in(a, "issued", "obeyed")) != "[shop-1]" {
		t.Errorf("%+v, %v", st, a)
	}
	if a = s.wants(http.StatusOK, http.MethodGet, "/api/fleet", ""); a["connected"] != true {
		t.Errorf("%v", a)
	}
	s.wants(http.StatusBadRequest, http.MethodPut, orders+"/throttle", `{"permits":99999999,"scope":"fleet"}`)
	a = s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"add":3,"scope":"fleet"}`)
	if st := s.limit.State(); st.Permits != 7 || fmt.Sprint(in(a, "issued", "before", "permits"), in(a, "issued", "after", "permits")) != "4 7" {
		t.Errorf("3 more: %+v, %v", st, a)
	}
	s.wants(http.StatusBadRequest, http.MethodPut, orders+"/throttle", `{"add":9223372036854775807,"scope":"fleet"}`)
	if n := s.limit.State().Permits; n != 7 {
		t.Errorf("%d permits after a refused addition", n)
	}
	s.wants(http.StatusOK, http.MethodPut, orders+"/throttle", `{"clear":true,"scope":"fleet"}`)
}

// Everything that is wrong with a configuration is reported at once.
func TestBadConfiguration(t *testing.T) {
	_, err := admin.New(admin.Config{Addr: "nowhere", Containers: []*container.ListenerContainer{nil}, Viewers: map[string]transport.Secret{"wall": {}}})
	for _, part := range []string{"nowhere", "Containers[0]", `Viewers has an entry "wall"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

// Stop is harmless when repeated, removes the token, and a second server on the
// same port is refused with that reason.
func TestStartAndStop(t *testing.T) {
	s := serve(t, admin.Config{})
	second, err := admin.New(admin.Config{Addr: s.a.Addr(), TokenFile: filepath.Join(t.TempDir(), "x")})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err == nil {
		t.Error("two servers on one port")
	}
	s.token = ""
	s.stream("") // an open stream does not hold it
	began := time.Now()
	if err := s.a.Stop(t.Context()); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if _, err := os.Stat(s.file); err == nil {
		t.Error("the token is still there")
	}
	if err := s.a.Start(t.Context()); err != nil {
		t.Error(err)
	}
}
