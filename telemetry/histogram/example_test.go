package histogram_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/histogram"
	"github.com/longshore-go/longshore/transport/memory"
)

// A provider of one's own with the set in its reader.
func Example() {
	durations := &histogram.Set{}
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(durations)) // in a program: a periodic one
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tel := telemetry.New(telemetry.Config{MeterProvider: durations.Provider(provider)})

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
		Middleware: []longshore.Middleware{tel.Metrics()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = pub.Publish(context.Background(), "orders", &longshore.Message{ID: "o-1"})
	_ = c.Start(context.Background())
	<-done
	_ = c.Stop(context.Background())

	var all metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &all)
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				fmt.Println(m.Name, h.DataPoints[0].Count)
			}
		}
	}
	// Output: messaging.process.duration 1
}
