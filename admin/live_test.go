package admin_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/transport"
)

// part is one event of the stream.
type part struct{ kind, data string }

// parts opens a stream and returns what it sends.
func (s *service) parts(edit ...func(*http.Request)) <-chan part {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.a.Addr()+"/api/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range edit {
		e(req)
	}
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatal(res, err)
	}
	ch := make(chan part, 1000)
	go func() {
		defer close(ch)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		kind := ""
		for lines.Scan() {
			if k, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
				kind = string(k)
			}
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
				ch <- part{kind, string(data)}
			}
		}
	}()
	return ch
}

func withToken(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// The stream begins with who is here and how everything stands, then has a point a
// second and what changed. The past is there for a page that opens later.
func TestStreamHasPoints(t *testing.T) {
	cfg := operators()
	cfg.Instance = "shop-1"
	s := serve(t, cfg)
	stream := s.parts(withToken(annas))
	first := <-stream
	var snap struct {
		admin.Session
		Containers []admin.Container `json:"containers"`
	}
	if err := json.Unmarshal([]byte(first.data), &snap); err != nil || first.kind != "snapshot" {
		t.Fatal(first, err)
	}
	if snap.Instance != "shop-1" || snap.Role != "operator" || snap.Name != "anna" || snap.Started.IsZero() || len(snap.Containers) != 1 || snap.Containers[0].Level != admin.LevelOK {
		t.Fatalf("%+v", snap)
	}
	outlet, _ := s.c.Source().(transport.Outlet)
	pub, self, err := outlet.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed, points := false, false
	for p := range stream {
		if points {
			break
		}
		switch p.kind {
		case "status":
			changed = changed || strings.Contains(p.data, `"received":1,`)
		case "points":
			if !changed {
				if err := pub.Publish(t.Context(), self, &longshore.Message{Body: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			}
			points = changed && strings.Contains(p.data, `"container":"orders"`)
		}
	}
	past := s.wants(http.StatusOK, http.MethodGet, orders+"/history?seconds=60", "")
	at, _ := past["at"].([]any)
	if in, _ := past["in"].([]any); len(at) == 0 || len(in) != len(at) || past["instance"] != "shop-1" {
		t.Fatalf("the past: %v", past)
	}
	s.wants(http.StatusBadRequest, http.MethodGet, "/api/history?seconds=0", "")
	all := s.wants(http.StatusOK, http.MethodGet, "/api/history", "")
	if list, _ := all["containers"].([]any); len(list) != 1 {
		t.Fatalf("%v", all)
	}
}

// A browser trades a token for a cookie that no script can read; a link works once; the
// cookie is worth nothing when the token is not.
func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "anna")
	if err := os.WriteFile(file, []byte(annas), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := operators()
	cfg.Operators = map[string]transport.Secret{"anna": transport.File(file)}
	s := serve(t, cfg)
	s.token = ""
	s.wants(http.StatusUnauthorized, http.MethodPost, "/api/session", `{"token":"not one of ours, but long"}`)
	s.wants(http.StatusUnauthorized, http.MethodPost, orders+"/pause", "")
	in := func(body string) *http.Response {
		res, err := http.Post("http://"+s.a.Addr()+"/api/session", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	code, ok := strings.CutPrefix(s.a.Link(t.Context()), "http://"+s.a.Addr()+"/#login=")
	if !ok {
		t.Fatal(s.a.Link(t.Context()))
	}
	res := in(`{"code":"` + code + `"}`) //nolint:bodyclose // in closes it
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "" {
		t.Fatalf("%+v", cookies)
	}
	with := func(r *http.Request) { r.AddCookie(cookies[0]) }
	if who := s.wants(http.StatusOK, http.MethodGet, "/api/session", "", with); who["role"] != "operator" || who["name"] != "anna" {
		t.Fatalf("%v", who)
	}
	s.wants(http.StatusOK, http.MethodPost, orders+"/pause", "", with)
	s.wants(http.StatusForbidden, http.MethodPost, orders+"/pause", "", with, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	s.wants(http.StatusForbidden, http.MethodGet, "/api/containers", "", with, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") })
	if err := os.WriteFile(file, []byte("another token of anna"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.wants(http.StatusUnauthorized, http.MethodPost, orders+"/pause", "", with)
	if err := os.WriteFile(file, []byte(annas), 0o600); err != nil {
		t.Fatal(err)
	}
	if in(`{"code":"`+code+`"}`).StatusCode != http.StatusUnauthorized { //nolint:bodyclose // in closes it
		t.Fatal("a link was used twice")
	}
	s.wants(http.StatusOK, http.MethodDelete, "/api/session", "", with)
	s.wants(http.StatusUnauthorized, http.MethodPost, orders+"/pause", "", with)
}

// A viewer who does not read is dropped once its queue is full.
func TestSlowViewer(t *testing.T) {
	s := serve(t, operators())
	slow, stop := admin.Subscribe(s.a)
	defer stop()
	for range 300 {
		s.wants(http.StatusOK, http.MethodPost, orders+"/resume", "") // events leave room: they may be missed
	}
	admin.Flood(s.a, 300)
	n := 0
	for range slow {
		n++
	}
	if n != cap(slow) {
		t.Fatalf("a viewer who does not read got %d parts, its queue has %d places", n, cap(slow))
	}
}
