package admin_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
)

// logged is what one call has written.
func logged(t *testing.T, logs *observer.ObservedLogs) map[string]any {
	t.Helper()
	all := logs.TakeAll()
	if len(all) != 1 || all[0].Level != zapcore.InfoLevel {
		t.Errorf("%d lines, want one: %v", len(all), all)
		return map[string]any{}
	}
	facts := all[0].ContextMap()
	facts["msg"] = all[0].Message
	return facts
}

// Whatever somebody changes leaves a line: who, what, from what to what, and why.
func TestEveryChangeLeavesALine(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	b := memory.New(memory.Config{})
	c := bank(t, b)
	cfg := operators()
	cfg.Logger, cfg.Containers = zap.New(core), []*container.ListenerContainer{c}
	s := serve(t, cfg)
	eventually(t, "one is parked and one runs", func() bool { st := c.Stats(); return st.Parked == 1 && st.Busy == 1 })
	const operator = "changed by operator"
	for _, x := range []struct {
		call, body, msg string
		facts           map[string]any
	}{
		{"POST " + orders + "/pause", `{"reason":"ledger down"}`, operator, map[string]any{"verb": "pause", "from": "running", "to": "paused", "reason": "ledger down"}},
		{"POST " + orders + "/resume", ``, operator, map[string]any{"verb": "resume", "from": "paused", "to": "running"}},
		{"PUT " + orders + "/workers", `{"min":2,"max":30}`, operator, map[string]any{"verb": "scale", "from": "1..10", "to": "2..30", "text": "workers 1..10 → 2..30"}},
		{"PUT " + orders + "/throttle", `{"permits":0,"for":"10m"}`, "throttle changed", map[string]any{"scope": "instance", "from": "permits 20", "to": "permits 0"}},
		{"PUT " + orders + "/throttle", `{"rate":2.5,"burst":3}`, "throttle changed", map[string]any{"to": "permits 20, rate 2.5, burst 3"}},
		{"PUT " + orders + "/throttle", `{"clear":true}`, "throttle changed", map[string]any{"to": "permits 20"}},
		{"POST /api/containers/bank/records/retry-now", `{"record":"p"}`, operator, map[string]any{"verb": "retry-now", "from": "parked", "message_id": "memory/bank/1", "key": "p"}},
		{"POST /api/containers/bank/records/dead-letter", `{"record":"r","interrupt":true}`, operator, map[string]any{"verb": "dead-letter", "from": "running", "message_id": "memory/bank/2"}},
		{"POST " + orders + "/drain", `{"reason":"upgrade"}`, operator, map[string]any{"verb": "drain", "from": "running", "reason": "upgrade"}},
	} {
		method, path, _ := strings.Cut(x.call, " ")
		s.wants(http.StatusOK, method, path, x.body)
		got := logged(t, logs)
		x.facts["msg"], x.facts["by"], x.facts["remote"], x.facts["transport"] = x.msg, "anna", "127.0.0.1", "memory"
		for name, want := range x.facts {
			if got[name] != want {
				t.Errorf("%s: %s is %v, want %v: %v", x.call, name, got[name], want, got)
			}
		}
		if _, until := got["until"]; until != strings.Contains(x.body, "for") {
			t.Errorf("%s: %v", x.call, got)
		}
	}
	// What was refused has changed nothing, and what has ended cannot be changed.
	for _, call := range []string{"POST " + orders + "/pause", "POST " + orders + "/resume", "PUT " + orders + "/workers"} {
		method, path, _ := strings.Cut(call, " ")
		s.wants(http.StatusConflict, method, path, `{"reason":"too late"}`)
	}
	s.token = walls
	s.wants(http.StatusForbidden, http.MethodPost, "/api/containers/bank/pause", "")
	if n := logs.Len(); n > 0 {
		t.Errorf("%d lines of what was refused", n)
	}
}

// A seek leaves a line for each partition.
func TestASeekLeavesALine(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "invoices"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	core, logs := observer.New(zapcore.DebugLevel)
	c, err := container.New(kafka.New(cluster.ListenAddrs(), kafka.Config{}).Group("billing", []string{"invoices"}, kafka.GroupConfig{}),
		longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Name: "invoices", Logger: zap.NewNop(), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	cfg := operators()
	cfg.Logger, cfg.Containers = zap.New(core), []*container.ListenerContainer{c}
	s := serve(t, cfg)
	containertest.Publish(t, c, "one")
	eventually(t, "it is done", func() bool { return c.Stats().Acked == 1 })
	s.wants(http.StatusOK, http.MethodPost, "/api/containers/invoices/seek", `{"start":true,"reason":"ticket 7"}`)
	var partitions []int32
	for _, l := range logs.All() {
		f := l.ContextMap()
		n, _ := f["partition"].(int32)
		if partitions = append(partitions, n); f["verb"] != "seek" || f["topic"] != "invoices" || f["to"] != "0" || f["from"] == nil || f["reason"] != "ticket 7" {
			t.Errorf("%s %v", l.Message, f)
		}
	}
	if slices.Sort(partitions); !slices.Equal(partitions, []int32{0, 1}) {
		t.Errorf("lines of the partitions %v", partitions)
	}
}

// Who has no token and who has a wrong one do not hear the same.
func TestAWrongTokenIsToldFromNone(t *testing.T) {
	s := serve(t, admin.Config{})
	for token, want := range map[string]string{"": "a token is needed", "some other service's": "unknown token"} {
		s.token = token
		if a := s.wants(http.StatusUnauthorized, http.MethodPost, orders+"/pause", ""); a["message"] != want {
			t.Errorf("%q: %v", token, a)
		}
	}
}
