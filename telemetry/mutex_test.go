package telemetry_test

import (
	"testing"

	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/telemetry"
)

func TestLooksOfAMutexAddUp(t *testing.T) {
	r := newRig(t)
	s := mutex.Stats{Acquired: 8, Duplicates: 1, Held: 3, Absent: 5, AbsentFirst: 2, Committed: 6, Failed: 1}
	stop, err := r.tel.ObserveMutex("orders", func() telemetry.MutexStats { return telemetry.MutexStats(s) })
	if err != nil {
		t.Fatal(err)
	}
	points := r.points(t)
	for _, want := range []string{"acquired 7", "busy 3", "absent 3", "absent_first 2", "duplicate 1"} {
		wantPoint(t, points, "longshore.mutex.outcomes longshore.mutex=orders outcome="+want)
	}
	if len(points) != 5 {
		t.Errorf("points: %v", points)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if points := r.points(t); len(points) != 0 {
		t.Errorf("after stop: %v", points)
	}
}
