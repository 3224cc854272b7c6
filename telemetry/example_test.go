package telemetry_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport/memory"
)

// Metrics of each message, and the gauges of the container. A program gives the
// provider of its exporter, or sets the global one.
func Example() {
	reader := sdkmetric.NewManualReader() // in a program: Prometheus or OTLP
	tel := telemetry.New(telemetry.Config{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})

	broker := memory.New(memory.Config{})
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	pay := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { close(done); return nil })
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), pay, container.Config{
		Logger:     zap.NewNop(),
		Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := tel.Observe(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = pub.Publish(context.Background(), "orders", &longshore.Message{ID: "o-1"})
	_ = c.Start(context.Background())
	<-done
	_ = c.Stop(context.Background())

	var rm metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &rm)
	for _, m := range rm.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "longshore.verdicts" {
			for _, p := range sum.DataPoints { // the other verdicts are there with 0
				if verdict, _ := p.Attributes.Value("verdict"); p.Value > 0 {
					fmt.Println(m.Name, verdict.AsString(), p.Value)
				}
			}
		}
	}
	_ = stop()
	// Output: longshore.verdicts ack 1
}
