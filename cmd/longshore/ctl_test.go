package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

const ctlToken = "a token of an operator"

// instance is a running service with an admin API.
type instance struct {
	c     *container.ListenerContainer
	limit *throttle.Limiter
	a     *admin.Server
}

func running(t *testing.T, fleet transport.Source) *instance {
	t.Helper()
	in := &instance{limit: throttle.NewPermits(20)}
	b := memory.New(memory.Config{})
	var err error
	in.c, err = container.New(b.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Throttle: in.limit, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, in.c)
	cfg := admin.Config{Addr: "127.0.0.1:0", Containers: []*container.ListenerContainer{in.c},
		Operators: map[string]transport.Secret{"anna": transport.Static(ctlToken)}}
	if fleet != nil {
		cfg.Fleet, err = throttle.NewFleet(fleet, throttle.FleetConfig{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Fleet.Add("orders", in.limit)
		if err := cfg.Fleet.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cfg.Fleet.Stop(context.Background()) })
	}
	if in.a, err = admin.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := in.a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return in
}

func reach(ins ...*instance) world {
	var addrs []string
	for _, in := range ins {
		addrs = append(addrs, in.a.Addr())
	}
	return world{env: map[string]string{"LONGSHORE_ADMIN": strings.Join(addrs, ","), "LONGSHORE_TOKEN": ctlToken}}
}

func TestCtlStatus(t *testing.T) {
	one, two := running(t, nil), running(t, nil)
	got := reach(one).run(t, "ctl", "status")
	want := regexp.MustCompile(`^container  source +state +rate/s  backlog  oldest  workers  p50 +p99 +permits  failed  dead  why\n` +
		`orders     memory orders  running +0 +\S+ +0.0 s +\d+/10 +– +– +20 +– +0\n$`)
	if got.code != 0 || !want.MatchString(got.out) {
		t.Errorf("%+v", got)
	}
	got = reach(one, two).run(t, "ctl", "status", "orders", "--json")
	var doc struct {
		Containers []struct {
			Instance, Name string
			Throttle       struct{ Permits int }
		}
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || len(doc.Containers) != 2 || doc.Containers[1].Instance != two.a.Addr() || doc.Containers[0].Throttle.Permits != 20 {
		t.Errorf("%v, %+v", err, got)
	}
	if got = reach(one).run(t, "ctl", "status", "other"); got.code != 1 || !strings.Contains(got.err, "error[not-found]") {
		t.Errorf("%+v", got)
	}
}

func TestCtlStatusWhereNobodyAnswers(t *testing.T) {
	w := world{env: map[string]string{"LONGSHORE_ADMIN": "127.0.0.1:1", "LONGSHORE_TOKEN": ctlToken}}
	if got := w.run(t, "ctl", "status"); got.code != 6 || got.out != "" || !strings.HasPrefix(got.err, "error[unreachable]") {
		t.Errorf("%+v", got)
	}
	// No containers and no answer are not the same to a program either.
	got := w.run(t, "ctl", "status", "--json")
	var e struct{ Code, Message, Help string }
	if err := json.Unmarshal([]byte(got.err), &e); err != nil || got.code != 6 || got.out != "" || e.Code != "unreachable" || !strings.Contains(e.Message, "127.0.0.1:1") || e.Help == "" {
		t.Errorf("%v, %+v", err, got)
	}
	one := running(t, nil)
	w.env["LONGSHORE_ADMIN"] = "127.0.0.1:1," + one.a.Addr()
	if got = w.run(t, "ctl", "status", "--json"); got.code != 6 || !strings.Contains(got.out, one.a.Addr()) || !strings.Contains(got.err, "unreachable") {
		t.Errorf("with one that answers: %+v", got)
	}
}

func TestCtlWhyOfAContainerThatIsNotThere(t *testing.T) {
	got := reach(running(t, nil)).run(t, "ctl", "why", "nope")
	if got.code != 1 || !strings.Contains(got.err, "help: see longshore ctl status") || strings.Contains(got.err, "GET /api") {
		t.Errorf("%+v", got)
	}
}

func TestCtlChanges(t *testing.T) {
	one, two := running(t, nil), running(t, nil)
	w := reach(one, two)
	got := w.run(t, "ctl", "pause", "orders", "--reason", "ledger down")
	if got.code != 0 || one.c.State() != container.StatePaused || two.c.State() != container.StatePaused || !strings.Contains(got.err, "2 instances, applied in") ||
		!strings.HasPrefix(got.out, "orders     running → paused; receives nothing until resume, no message is held\n") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "pause", "orders"); !strings.HasPrefix(got.out, "orders     already paused, nothing changed\n") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "pause", "orders", "--reason", "ledger down"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "status"); !strings.Contains(got.out, "paused by anna (ledger down), since ") || !strings.Contains(got.out, "longshore ctl resume orders") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "resume", "orders"); got.code != 0 || one.c.State() != container.StateRunning {
		t.Errorf("%+v", got)
	}
	reach(one).run(t, "ctl", "scale", "orders", "--workers", "4:50").want(t, 0, "orders     workers 1..10 → 4..50\n", "")
	reach(one).run(t, "ctl", "scale", "orders", "--workers", ":30").want(t, 0, "orders     workers 4..50 → 4..30\n", "")
	got = reach(one).run(t, "ctl", "throttle", "orders", "--permits", "0", "--for", "10m", "--reason", "ledger down")
	if got.code != 0 || !regexp.MustCompile(`^orders     permits 20 → 0     until \d\d:\d\d:\d\d \(then 20\)\n$`).MatchString(got.out) || one.limit.State().Permits != 0 {
		t.Errorf("%+v", got)
	}
	if got = reach(one).run(t, "ctl", "status"); !strings.Contains(got.out, "0 permits; set by anna (ledger down) until ") {
		t.Errorf("%+v", got)
	}
	reach(one).run(t, "ctl", "throttle", "orders", "--clear").want(t, 0, "orders     permits 0 → 20\n", "")
	reach(one).run(t, "ctl", "throttle", "orders", "--rate", "0.5").want(t, 0, "orders     permits 20 → 20     rate – → 0.5\n", "")
	reach(two).run(t, "ctl", "throttle", "orders", "--permits", "3", "--dry-run").want(t, 0,
		"would ask "+two.a.Addr()+": PUT /api/containers/orders/throttle {\"permits\":3}\n", "")
	if n, _ := two.limit.Limits(); n != 20 {
		t.Errorf("%d permits after --dry-run", n)
	}
	if got = reach(one).run(t, "ctl", "drain", "orders"); got.code != 0 || !strings.HasPrefix(got.out, "orders     drained in ") || one.c.State() != container.StateStopped {
		t.Errorf("%+v", got)
	}
	if got = reach(one).run(t, "ctl", "resume", "orders"); got.code != 7 {
		t.Errorf("resume after drain: %+v", got)
	}
}

func TestCtlFleet(t *testing.T) {
	b := memory.New(memory.Config{})
	src := b.Broadcast("control", memory.BroadcastConfig{Retain: true})
	one, two := running(t, src), running(t, src)
	got := reach(one, two).run(t, "ctl", "throttle", "orders", "--fleet", "--share", "total", "--permits", "5")
	if got.code != 0 || !strings.Contains(got.out, "2 instances, applied in ") {
		t.Errorf("%+v", got)
	}
	a, _ := one.limit.Limits()
	z, _ := two.limit.Limits()
	if a+z != 5 {
		t.Errorf("%d and %d permits of 5", a, z)
	}
	got = reach(one, two).run(t, "ctl", "throttle", "orders", "--fleet", "--add", "3")
	if got.code != 0 || !strings.Contains(got.out, "fleet total 5 → total 8") {
		t.Errorf("%+v", got)
	}
	a, _ = one.limit.Limits()
	z, _ = two.limit.Limits()
	if a+z != 8 {
		t.Errorf("%d and %d permits of 8", a, z)
	}
}

func TestCtlEvents(t *testing.T) {
	one := running(t, nil)
	seen := make(chan outcome)
	go func() { seen <- reach(one).run(t, "ctl", "events", "-n", "20") }() // those of the start may come first
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case got := <-seen:
			if got.code != 0 || !strings.Contains(got.out, "orders  operator") || !strings.Contains(got.out, "by anna") {
				t.Errorf("%+v", got)
			}
			return
		case <-tick.C: // until the stream is open
			reach(one).run(t, "ctl", "pause", "orders")
		}
	}
}

func TestCtlRefused(t *testing.T) {
	one := running(t, nil)
	w := reach(one)
	w.env["LONGSHORE_TOKEN"] = "not the right one"
	if got := w.run(t, "ctl", "pause", "orders"); got.code != 6 || !strings.Contains(got.err, "error[auth]") || strings.Contains(got.err, "not the right one") {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(ctlToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.run(t, "ctl", "pause", "orders", "--token-file", file); got.code != 0 {
		t.Errorf("%+v", got)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.run(t, "ctl", "status", "--admin", closed); got.code != 6 || !strings.Contains(got.err, "error[unreachable]") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{
		{"ctl"}, {"ctl", "pause"}, {"ctl", "scale", "orders"}, {"ctl", "scale", "orders", "--workers", "x:3"}, {"ctl", "scale", "orders", "--workers", ":"},
		{"ctl", "throttle", "orders"}, {"ctl", "throttle", "orders", "--permits", "1", "--clear"}, {"ctl", "throttle", "orders", "--permits", "x"},
		{"ctl", "throttle", "orders", "--permits", "1", "--for", "0s"}, {"ctl", "throttle", "orders", "--permits", "1", "--share", "some"},
		{"ctl", "status", "--admin", "http://u:p@host"}, {"ctl", "status", "--token-file", "/does/not/exist"},
	} {
		if got := w.run(t, args...); got.code != 2 || got.out != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// A change that was not answered in time may have happened; a look has not changed anything.
func TestCtlWithoutAnAnswer(t *testing.T) {
	var lc net.ListenConfig
	frozen, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	w := world{env: map[string]string{"LONGSHORE_ADMIN": frozen.Addr().String(), "LONGSHORE_TOKEN": ctlToken}}
	for args, changes := range map[string]bool{"pause orders": true, "status": false} {
		got := w.run(t, append([]string{"ctl", "--timeout", "100ms"}, strings.Fields(args)...)...)
		if got.code != 6 || !strings.HasPrefix(got.err, "error[timeout]") || !strings.Contains(got.err, "no response within --timeout") || changes != strings.Contains(got.err, "may still be carried out") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// The token that an instance made is found by its port.
func TestCtlFindsTheToken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	a, err := admin.New(admin.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop(context.Background()) }()
	w := world{env: map[string]string{"LONGSHORE_ADMIN": a.Addr()}}
	if got := w.run(t, "ctl", "pause", "orders"); got.code != 1 || !strings.Contains(got.err, "no container orders") {
		t.Errorf("%+v", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.Addr()+"/api/containers/orders/pause", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", res.Status)
	}
}
