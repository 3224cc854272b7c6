package telemetry_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/telemetry"
)

func TestRouteOfABridge(t *testing.T) {
	r := newRig(t)
	p := telemetry.BridgeProgress{Forwarded: 7, Looped: 3, Skipped: 2, Parked: 1, Lag: 40, Age: 1500 * time.Millisecond}
	stop, err := r.tel.ObserveBridge("orders", func() telemetry.BridgeProgress { return p })
	if err != nil {
		t.Fatal(err)
	}
	points := r.points(t)
	for _, want := range []string{"messages longshore.bridge=orders outcome=forwarded 7", "messages longshore.bridge=orders outcome=looped 3",
		"messages longshore.bridge=orders outcome=skipped 2", "messages longshore.bridge=orders outcome=parked 1", "lag longshore.bridge=orders 40", "age longshore.bridge=orders 1.5"} {
		wantPoint(t, points, "longshore.bridge."+want)
	}
	p.Lag, p.Age = -1, 0 // not known
	if points := r.points(t); len(points) != 4 {
		t.Errorf("points: %v", points)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
