package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// parking is an instance whose container has one record parked for an hour.
func parking(t *testing.T) *instance {
	t.Helper()
	in := &instance{}
	b := memory.New(memory.Config{})
	var err error
	in.c, err = container.New(b.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("the ledger is down")
		}
		return nil
	}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "orders.dead"}, Logger: zap.NewNop(),
		Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Hour, Max: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, in.c)
	containertest.PublishMessages(t, in.c, &longshore.Message{ID: "o-17", Key: []byte("c-91"), Body: []byte("{}")})
	in.a, err = admin.New(admin.Config{Addr: "127.0.0.1:0", Containers: []*container.ListenerContainer{in.c}, Operators: map[string]transport.Secret{"anna": transport.Static(ctlToken)}})
	if err != nil {
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
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); in.c.Stats().Parked == 0; {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("nothing was parked")
		}
	}
	return in
}

func TestCtlOneRecord(t *testing.T) {
	empty, one := running(t, nil), parking(t)
	w := reach(empty, one)
	got := w.run(t, "ctl", "inflight", "orders")
	if got.code != 0 || !strings.HasPrefix(got.out, "record") || !strings.Contains(got.out, "parked  c-91      2/5") || !strings.Contains(got.out, one.a.Addr()) {
		t.Errorf("%+v", got)
	}
	got = w.run(t, "ctl", "inflight", "orders", "--json")
	var doc struct {
		Total   int
		Records []struct{ Instance, Record, State, Key string }
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || doc.Total != 1 || len(doc.Records) != 1 || doc.Records[0].Key != "c-91" || doc.Records[0].Instance != one.a.Addr() {
		t.Errorf("%v, %+v", err, got)
	}
	if got = w.run(t, "ctl", "stuck", "orders"); got.code != 0 || got.out != "" || got.err != "none\n" {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "retry-now", "orders", "o-18"); got.code != 1 || !strings.Contains(got.err, "error[not-found]") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "release", "orders", "o-17"); got.code == 0 || !strings.Contains(got.err, "error[unsupported]") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "dead-letter", "orders", "o-17", "--dry-run"); got.code != 0 || strings.Count(got.out, "would ask") != 2 || one.c.Stats().Parked != 1 {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "dead-letter", "orders", "o-17", "--reason", "ticket 7"); got.code != 0 || !strings.HasPrefix(got.out, "orders     record dead-lettered: ") || one.c.Stats().Parked != 0 {
		t.Errorf("%+v", got)
	}
	two := parking(t)
	if got = reach(two).run(t, "ctl", "retry-now", "orders", "o-17"); got.code != 0 || !strings.Contains(got.out, "(parked, attempt 2)") {
		t.Errorf("%+v", got)
	}
	bad := reach(two)
	bad.env["LONGSHORE_TOKEN"] = "not the right one"
	for _, args := range [][]string{{"retry-now", "orders", "x"}, {"dead-letter", "orders", "x"}, {"release", "orders", "x"}, {"stuck", "orders"}, {"seek", "orders", "--to", "end", "--yes"}} {
		if got = bad.run(t, append([]string{"ctl"}, args...)...); got.code != 6 {
			t.Errorf("%v with a wrong token: %+v", args, got)
		}
	}
}

func TestCtlWhy(t *testing.T) {
	one, two := running(t, nil), running(t, nil)
	two.limit.SetPermits(0)
	got := reach(one, two).run(t, "ctl", "why", "orders")
	if got.code != 0 || !strings.Contains(got.out, "nothing: no work waits\n") || !strings.Contains(got.out, "orders@"+two.a.Addr()+"     the throttle holds everything: 0 permits; raise it in the configuration, or with longshore ctl throttle orders\n") {
		t.Errorf("%+v", got)
	}
	if got = reach(two).run(t, "ctl", "status"); got.code != 0 || !strings.HasSuffix(got.out, "  the throttle holds everything: 0 permits; raise it in the configuration, or with longshore ctl throttle orders\n") {
		t.Errorf("%+v", got)
	}
	if got = reach(two).run(t, "ctl", "why", "orders", "--json"); got.code != 0 || !strings.Contains(got.out, `"by":"permits"`) {
		t.Errorf("%+v", got)
	}
}

func TestCtlSeek(t *testing.T) {
	one := running(t, nil)
	w := reach(one)
	for _, args := range [][]string{
		{"--to", "start"}, // without --yes
		{"--to", "17", "--yes"}, {"--to", "soon", "--yes"}, {"--yes"}, {"--to", "-1", "--partition", "0", "--yes"}, {"--to", "1", "--partition", "-1", "--yes"},
	} {
		if got := w.run(t, append([]string{"ctl", "seek", "orders"}, args...)...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
	w.run(t, "ctl", "seek", "orders", "--to", "17", "--partition", "3", "--topic", "t", "--dry-run").want(t, 0,
		"would ask "+one.a.Addr()+": POST /api/containers/orders/seek {\"offset\":17,\"partition\":3,\"topic\":\"t\"}\n", "")
	if got := w.run(t, "ctl", "seek", "orders", "--to", "start", "--yes"); !strings.Contains(got.err, "error[unsupported]") {
		t.Errorf("a queue: %+v", got)
	}
}

// A command that a container's sentence advises exists.
func TestAdvisedCommandsExist(t *testing.T) {
	text, err := os.ReadFile("../../container/bottleneck.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`ctl\("([a-z-]+)"|longshore ctl ([a-z-]+)|longshore (doctor|dlq list)`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 10 {
		t.Fatalf("only %d commands are advised", len(found))
	}
	for _, m := range found {
		args := append(strings.Fields(m[3]), "--help")
		if m[3] == "" {
			args = []string{"ctl", m[1] + m[2], "--help"}
		}
		if got := reach().run(t, args...); got.code != 0 || !strings.Contains(got.out, "longshore "+strings.Join(args[:len(args)-1], " ")) {
			t.Errorf("%v: %d %s%s", args, got.code, got.out, got.err)
		}
	}
}
