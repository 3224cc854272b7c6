package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is an admin API with one container.
type service struct {
	*httptest.Server
	since atomic.Pointer[time.Time]
	acked atomic.Int64
	token string
}

func serve(t *testing.T, token string) *service {
	s := &service{token: token}
	began := time.Now().Add(-time.Hour)
	s.since.Store(&began)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/containers", func(w http.ResponseWriter, r *http.Request) {
		if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"code": "auth", "message": "a token is needed", "help": "send Authorization"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"containers": []admin.Container{{Name: "orders", Since: *s.since.Load(), Acked: s.acked.Add(10), Live: true, Ready: true}}})
	})
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("id: 7\nevent: event\ndata: {\"id\":7,\"container\":\"orders\",\"kind\":\"scaled\"}\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *service) target(name string) fleet.Target {
	return fleet.Target{Name: name, Base: s.URL, Token: transport.Static(s.token), Hint: "give a token"}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("never: " + what)
		}
	}
}

// An instance that accepts connections and never answers, one that is not there and one that
// refuses the token are shown as such; the one that answers is read at its pace.
func TestAnInstanceThatDoesNotAnswerDelaysNothing(t *testing.T) {
	well, closed := serve(t, "the operator's token"), serve(t, "another token")
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	refusing := closed.target("refusing")
	refusing.Token = transport.Static("not this one's token")
	f := fleet.New([]fleet.Target{{Name: "frozen", Base: "http://" + frozen.Addr().String()}, {Name: "absent", Base: "http://127.0.0.1:1"}, refusing, well.target("well")},
		fleet.Config{Every: 20 * time.Millisecond, Timeout: 300 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	defer func() { cancel(); <-done }()

	var s fleet.Snapshot
	until(t, "each is known", func() bool {
		s = f.Snapshot()
		for _, in := range s.Instances {
			if in.Status == fleet.Asking {
				return false
			}
		}
		return len(s.Instances[3].Series["orders"]) > 5
	})
	for i, want := range []struct{ status, code, problem string }{{"silent", "timeout", "no answer in time"}, {"silent", "unreachable", "refused"}, {"silent", "auth", "a token is needed"}, {"live", "", ""}} {
		in := s.Instances[i]
		if string(in.Status) != want.status || in.Code != want.code || !strings.Contains(in.Problem, want.problem) || strings.Contains(in.Problem+in.Help, "token of") {
			t.Errorf("%s: %s %s %s", in.Name, in.Status, in.Code, in.Problem)
		}
	}
	if s.Instances[2].Help != "give a token" {
		t.Errorf("the help is %q", s.Instances[2].Help)
	}
	until(t, "an event", func() bool {
		e := f.Snapshot().Instances[3].Events
		return len(e) == 1 && e[0].Kind == "scaled"
	})
	if p := f.Snapshot().Instances[3].Series["orders"]; p[0].Done <= 0 || p[1].Done <= 0 {
		t.Errorf("rates %v, %v", p[0].Done, p[1].Done)
	}
}

func TestARestartIsNoticed(t *testing.T) {
	srv := serve(t, "")
	f := fleet.New([]fleet.Target{srv.target("one")}, fleet.Config{Every: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	until(t, "an answer", func() bool { return f.Snapshot().Instances[0].Status == fleet.Live })
	if in := f.Snapshot().Instances[0]; !in.Restarted.IsZero() {
		t.Errorf("restarted at %v", in.Restarted)
	}
	later := time.Now()
	srv.since.Store(&later)
	until(t, "the restart", func() bool { return !f.Snapshot().Instances[0].Restarted.IsZero() })
	select {
	case <-f.Changed():
	case <-time.After(5 * time.Second):
		t.Error("no change was signalled")
	}
}

// A change is sent with the token of its instance, follows no redirect, and its refusal is
// the instance's own.
func TestCalls(t *testing.T) {
	var got atomic.Value
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store("the token went on: " + r.Header.Get("Authorization"))
	}))
	defer away.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		case "/text":
			_, _ = w.Write([]byte("hello"))
		case "/no":
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"code":"state","message":"it is draining","help":"start the service again"}`))
		default:
			got.Store(r.Method + " " + r.Header.Get("Authorization"))
			_, _ = w.Write([]byte(`{"n":1}`))
		}
	}))
	defer srv.Close()
	f := fleet.New([]fleet.Target{{Name: "one", Base: srv.URL, Token: transport.Static("t1\n")}, {Name: "two", Base: srv.URL, Token: transport.Static("t2")}}, fleet.Config{})
	defer func() { // closes what is idle
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.Run(ctx)
	}()
	var v struct{ N int }
	if err := f.Call(t.Context(), "two", "PUT", "/x", map[string]any{"a": 1}, &v); err != nil || v.N != 1 || got.Load() != "PUT Bearer t2" {
		t.Errorf("%v, %v, %v", err, v, got.Load())
	}
	for path, code := range map[string]longshore.Code{"/moved": longshore.CodeUnreachable, "/text": longshore.CodeUnreachable, "/no": longshore.CodeState} {
		err := f.Call(t.Context(), "one", "POST", path, nil, &v)
		var e *longshore.Error
		if !errors.As(err, &e) || e.Code != code || e.Hint == "" || strings.Contains(err.Error(), "t1") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got.Load() != "PUT Bearer t2" {
		t.Error(got.Load())
	}
	if err := f.Call(t.Context(), "three", "GET", "/", nil, nil); !errors.Is(err, longshore.CodeNotFound) {
		t.Error(err)
	}
}
