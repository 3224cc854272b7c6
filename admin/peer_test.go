package admin

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

const peerToken = "0123456789abcdef-operator"

func peerServer(t *testing.T, log *zap.Logger) *Server {
	t.Helper()
	c, err := container.New(memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{}),
		longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Addr: "127.0.0.1:0", Containers: []*container.ListenerContainer{c}, Logger: log,
		Operators: map[string]transport.Secret{"anna": transport.Static(peerToken)}, Viewers: map[string]transport.Secret{"wall": transport.Static("0123456789abcdef-viewer")},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") })})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// F-N27: who may do what follows from the connection, on a mux of one's own too.
func TestAccessIsDecidedByTheConnection(t *testing.T) {
	s := peerServer(t, zap.NewNop())
	h := s.Handler()
	type peer struct{ addr, header, token string }
	peers := map[string]peer{
		"here":           {addr: "127.0.0.1:40000"},
		"here by IPv6":   {addr: "[::1]:40000"},
		"remote":         {addr: "10.0.0.9:40000"},
		"proxy here":     {addr: "127.0.0.1:40000", header: "X-Forwarded-For"},
		"another proxy":  {addr: "127.0.0.1:40000", header: "Forwarded"},
		"nginx's":        {addr: "127.0.0.1:40000", header: "X-Real-IP"},
		"unix socket":    {addr: "@"},
		"wrong token":    {addr: "127.0.0.1:40000", token: "0123456789abcdef-guessed"},
		"remote viewer":  {addr: "10.0.0.9:40000", token: "0123456789abcdef-viewer"},
		"remote anna":    {addr: "10.0.0.9:40000", token: peerToken},
		"anna's browser": {addr: "127.0.0.1:40000", header: "X-Forwarded-For", token: peerToken},
	}
	const none, glance, view, change = 0, 1, 2, 3
	can := map[string]int{"here": glance, "here by IPv6": glance, "remote viewer": view, "remote anna": change, "anna's browser": change}
	for name, p := range peers {
		for _, c := range []struct {
			method, path string
			least        int
		}{
			{"GET", "/health/live", none}, {"GET", "/health/ready", none}, {"GET", "/metrics", none},
			{"GET", "/api/containers", glance}, {"GET", "/api/containers/orders", glance}, {"GET", "/api/containers/orders/why", glance},
			{"GET", "/api/openapi.json", glance}, {"GET", "/nowhere", glance},
			{"GET", "/api/containers/orders/inflight", view}, {"GET", "/api/fleet", view},
			{"GET", "/api/containers/orders/stuck", change}, {"POST", "/api/containers/orders/pause", change}, {"PUT", "/api/containers/orders/workers", change},
		} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, nil)
			if r.RemoteAddr = p.addr; p.header != "" {
				r.Header.Set(p.header, "10.0.0.9")
			}
			if p.token != "" {
				r.Header.Set("Authorization", "Bearer "+p.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			if refused != (can[name] < c.least) {
				t.Errorf("%s %s %s: %d", name, c.method, c.path, w.Code)
			}
		}
	}
}

// F-N27: without a token nobody sees texts, which may have ids and keys in them.
func TestACallerWithoutATokenSeesNamesAndNumbers(t *testing.T) {
	v := Container{Name: "orders", Reason: "key c-91", Limited: container.Bottleneck{By: container.ByHotKey, Text: "key c-91"}, Paused: &pausedBy{By: "anna", Reason: "c-91"},
		Workers: Workers{Now: 3, Limit: "c-91"}}
	if text := fmt.Sprintf("%+v %+v", v.Bare(), v.Bare().Paused); strings.Contains(text, "c-91") || strings.Contains(text, "anna") || v.Bare().Workers.Now != 3 || v.Bare().Limited.By != container.ByHotKey {
		t.Errorf("%s", text)
	}
	e := Event{ID: 7, Container: "orders", Kind: "operator", Text: "c-91", Reason: "c-91", By: "anna", MessageID: "m-1", Key: "c-91", Code: "panic"}
	if got := e.Bare(); got != (Event{ID: 7, Container: "orders", Kind: "operator", Code: "panic"}) {
		t.Errorf("%+v", got)
	}
}

// F-N27: failed logins are counted, and logged once a minute.
func TestFailedLoginsAreCountedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.WarnLevel)
		s := peerServer(t, zap.New(core))
		h := s.Handler()
		try := func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/containers", nil)
			r.Header.Set("Authorization", "Bearer 0123456789abcdef-guessed")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 5 {
			try()
		}
		<-time.After(time.Minute)
		try()
		all := lines.FilterMessage("admin login refused").All()
		if len(all) != 2 || all[0].ContextMap()["remote"] == "" || all[1].ContextMap()["repeated"] != int64(5) || s.FailedLogins() != 6 {
			t.Errorf("%v, %d", all, s.FailedLogins())
		}
	})
}

// F-N28: clients that read nothing, at /metrics and at the events, delay no stop.
func TestReadersThatDoNotReadDelayNoStop(t *testing.T) {
	s := peerServer(t, zap.NewNop())
	big := strings.Repeat("x", 1<<20)
	writing := make(chan struct{}, 8)
	s.cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writing <- struct{}{}
		for range 64 {
			if _, err := fmt.Fprintln(w, big); err != nil {
				return
			}
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		<-writing
	}
	stream, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	fmt.Fprintf(stream, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if line, err := bufio.NewReader(stream).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begin := time.Now()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(begin); took > 10*stopTime {
		t.Errorf("the stop took %v", took)
	}
}

// F-N28: a reader that stops reading is cut off, and only so many streams are open.
func TestStreamsAreBounded(t *testing.T) {
	s := peerServer(t, zap.NewNop())
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	get := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/api/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for range maxStreams {
		res := get()
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
	}
	res := get()
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("one stream more: %s", res.Status)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// F-N28
func TestConnectionsAreBounded(t *testing.T) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limitedListener{Listener: ln, places: make(chan struct{}, 1)}
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := dial()
	defer func() { _ = first.Close() }()
	held, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := dial()
	defer func() { _ = second.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the places is open")
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	third := dial()
	defer func() { _ = third.Close() }()
	if c := <-accepted; c == nil {
		t.Error("a place that was given back is not taken")
	} else {
		_ = c.Close()
	}
	_ = ln.Close()
}

// F-N29: a directory that belongs to somebody else, or that others may write to, does not
// keep the service from starting.
func TestAForeignTokenDirectoryKeepsNobodyFromStarting(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", tmp)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	taken := filepath.Join(tmp, fmt.Sprintf("longshore-%d", os.Getuid()))
	if err := os.WriteFile(taken, nil, 0o600); err != nil { // as another user's directory: it cannot be used
		t.Fatal(err)
	}
	start := func() (refused bool) {
		core, lines := observer.New(zap.WarnLevel)
		s, err := New(Config{Addr: "127.0.0.1:0", Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatalf("start: %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		return lines.FilterMessage("no admin token was written, changes are refused").Len() > 0
	}
	if !start() {
		t.Error("nothing is said of the token that was not written")
	}
	cache := filepath.Join(tmp, "cache")
	t.Setenv("XDG_CACHE_HOME", cache)
	if got := TokenFile("127.0.0.1:8391"); !strings.HasPrefix(got, cache) || start() {
		t.Errorf("the token is at %s", got)
	}
}
