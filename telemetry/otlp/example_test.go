package otlp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/otlp"
)

// Traces go to a collector, metrics elsewhere. Close sends the rest.
func Example() {
	paths := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer collector.Close()
	out, err := otlp.New(otlp.Config{Endpoint: collector.URL, Service: "orders", NoMetrics: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	tel := telemetry.New(telemetry.Config{TracerProvider: out.TracerProvider()})
	_ = tel.Trace() // for container.Config.Middleware

	ctx := context.Background()
	_, span := out.TracerProvider().Tracer("example").Start(ctx, "process orders")
	span.End()
	fmt.Println(out.Close(ctx), <-paths)
	// Output: <nil> /v1/traces
}
