package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/prom"
	"github.com/longshore-go/longshore/transport/memory"
)

// A Prometheus page about a container. admin.Config.Metrics serves it at /metrics.
func Example() {
	page, err := prom.New(prom.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tel := telemetry.New(telemetry.Config{MeterProvider: page.MeterProvider()})
	c, err := container.New(memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{}),
		longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Middleware: []longshore.Middleware{tel.Metrics()}, Workers: container.Workers{Max: 50}})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := tel.Observe(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_ = c.Start(ctx)
	answer := httptest.NewRecorder()
	page.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "longshore_container_workers_max{") {
			fmt.Println(strings.Fields(line)[1])
		}
	}
	_ = c.Stop(ctx)
	_ = stop()
	// Output: 50
}
