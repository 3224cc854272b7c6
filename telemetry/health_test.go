package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-L04: the probes name who is not well; what each state means is tested where the
// states are made.
func TestHealthNamesTheContainer(t *testing.T) {
	broker := memory.New(memory.Config{})
	var cs []*container.ListenerContainer
	for _, name := range []string{"orders", "invoices"} {
		c, err := container.New(broker.Queue(name, memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Logger: zap.NewNop(), Reopen: container.Backoff{Initial: 1 << 40}})
		if err != nil {
			t.Fatal(err)
		}
		containertest.Start(t, c)
		cs = append(cs, c)
	}
	missing, err := container.New(broker.Queue("absent", memory.QueueConfig{MustExist: true}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Start(t.Context()); err == nil {
		t.Fatal("a queue that is not there was opened")
	}
	want := func(h http.Handler, path string, status int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != status || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %s; want %d with %s", path, w.Code, w.Body, status, text)
		}
	}
	well := telemetry.Health(cs...)
	want(well, "/health/live", http.StatusOK, `"live":true`)
	want(well, "/health/ready", http.StatusOK, `"ready":true`)
	cs[1].Pause()
	want(well, "/health/ready", http.StatusOK, `"invoices":"it is paused, since `)
	if err := cs[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(well, "/health/live", http.StatusOK, `"live":true`)
	want(well, "/health/ready", http.StatusServiceUnavailable, `"orders":"it is stopped"`)
	want(well, "/health/ready/invoices", http.StatusOK, `"ready":true`)
	want(well, "/health/ready/nobody", http.StatusNotFound, "not-found")
	ill := telemetry.Health(append(cs, missing)...)
	want(ill, "/health/live", http.StatusServiceUnavailable, `"absent":"ended: `)
}
