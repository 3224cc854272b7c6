package admin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/memory"
)

// bank is a container whose handler fails for "parked", waits for "running" and
// works otherwise.
func bank(t *testing.T, b *memory.Broker) *container.ListenerContainer {
	t.Helper()
	c, err := container.New(b.Queue("bank", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		switch {
		case string(d.Body) == "parked" && d.Attempt == 1:
			return errors.New("the ledger is down")
		case string(d.Body) == "running":
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "bank.dead"}, Logger: zap.NewNop(), DrainTimeout: time.Second,
		Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Hour, Max: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, &longshore.Message{ID: "p", Key: []byte("p"), Body: []byte("parked")}, &longshore.Message{ID: "r", Key: []byte("r"), Body: []byte("running")})
	return c
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestOneRecord(t *testing.T) {
	b := memory.New(memory.Config{})
	c := bank(t, b)
	cfg := operators()
	cfg.Containers = []*container.ListenerContainer{c}
	s := serve(t, cfg)
	const bank = "/api/containers/bank"
	eventually(t, "one is parked and one runs", func() bool { st := c.Stats(); return st.Parked == 1 && st.Busy == 1 })

	a := s.wants(http.StatusOK, http.MethodGet, bank+"/inflight", "")
	list, _ := a["records"].([]any)
	if a["total"] != 2.0 || len(list) != 2 || in(list[0], "state") != "running" || in(list[1], "state") != "parked" || in(list[1], "key") != "p" || in(list[1], "due") == nil {
		t.Fatalf("%v", a)
	}
	a = s.wants(http.StatusOK, http.MethodGet, bank+"/inflight?limit=1", "")
	if list, _ = a["records"].([]any); a["total"] != 2.0 || len(list) != 1 {
		t.Errorf("%v", a)
	}
	for _, limit := range []string{"0", "-1", "x", "99999999"} {
		s.wants(http.StatusBadRequest, http.MethodGet, bank+"/inflight?limit="+limit, "")
	}
	if a = s.wants(http.StatusOK, http.MethodGet, bank+"/stuck", ""); a["total"] != 0.0 {
		t.Errorf("%v", a)
	}
	if a = s.wants(http.StatusOK, http.MethodGet, bank+"/why", ""); a["text"] == "" || in(s.wants(http.StatusOK, http.MethodGet, bank, ""), "limited", "text") == nil {
		t.Errorf("%v", a)
	}
	s.wants(http.StatusNotFound, http.MethodPost, bank+"/records/retry-now", `{"record":"nobody's"}`)
	s.wants(http.StatusBadRequest, http.MethodPost, bank+"/records/retry-now", `{}`)
	s.wants(http.StatusConflict, http.MethodPost, bank+"/records/release", `{"record":"p"}`)
	a = s.wants(http.StatusConflict, http.MethodPost, bank+"/records/dead-letter", `{"record":"r"}`)
	if text, _ := a["message"].(string); !strings.Contains(text, "its handler runs") {
		t.Errorf("%v", a)
	}
	s.wants(http.StatusOK, http.MethodPost, bank+"/records/retry-now", `{"record":"p"}`)
	a = s.wants(http.StatusOK, http.MethodPost, bank+"/records/dead-letter", `{"record":"r","interrupt":true,"reason":"ticket 7"}`)
	if a["done"] != "record dead-lettered when its handler returns" || in(a, "record", "state") != "running" {
		t.Errorf("%v", a)
	}
	eventually(t, "both are through", func() bool { return c.Stats().Acked == 1 && b.Inspect("bank.dead").Ready == 1 })
}

// F-J05: a stack tells of the inside, so it is not for everybody who may look.
func TestStacksAreForOperators(t *testing.T) {
	s := serve(t, operators())
	s.token = walls
	s.wants(http.StatusOK, http.MethodGet, orders+"/inflight", "")
	s.wants(http.StatusOK, http.MethodGet, orders+"/why", "")
	s.wants(http.StatusForbidden, http.MethodGet, orders+"/stuck", "")
	s.token = ""
	s.wants(http.StatusUnauthorized, http.MethodGet, orders+"/stuck", "")
}

func TestSeekIsChecked(t *testing.T) {
	s := serve(t, operators())
	for _, body := range []string{`{}`, `{"start":true,"end":true}`, `{"offset":3}`, `{"offset":-1,"partition":0}`, `{"partition":-1,"start":true}`, `{"time":"yesterday"}`, `{"start":true,"topics":1}`} {
		s.wants(http.StatusBadRequest, http.MethodPost, orders+"/seek", body)
	}
	s.wants(http.StatusConflict, http.MethodPost, orders+"/seek", `{"start":true}`) // a queue has no positions
}
