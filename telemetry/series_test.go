package telemetry_test

import (
	"context"
	"errors"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N29: two containers that would share their series are refused, until the first is not
// observed any more.
func TestContainersWithEqualNameAndSourceAreRefused(t *testing.T) {
	made := func(queue string) *container.ListenerContainer {
		c, err := container.New(memory.New(memory.Config{}).Queue(queue, memory.QueueConfig{}),
			longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Name: "orders", Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	tel := telemetry.New(telemetry.Config{MeterProvider: sdkmetric.NewMeterProvider()})
	first, twin, other := made("q"), made("q"), made("another")
	if _, err := tel.Observe(first, twin); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("both at once: %v", err)
	}
	stop, err := tel.Observe(first, other)
	if err != nil {
		t.Fatalf("another source: %v", err)
	}
	if _, err := tel.Observe(twin); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("one after the other: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if stop, err = tel.Observe(twin); err != nil {
		t.Fatalf("when the first is gone: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
