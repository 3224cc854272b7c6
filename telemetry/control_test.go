package telemetry_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAgeOfTheControl(t *testing.T) {
	r := newRig(t)
	var connected bool
	var since time.Time
	stop, err := r.tel.ObserveControl("prod", func() (bool, time.Time) { return connected, since })
	if err != nil {
		t.Fatal(err)
	}
	if points := r.points(t); len(points) != 0 {
		t.Errorf("before the first try: %v", points)
	}
	since = time.Now().Add(-time.Minute)
	points := r.points(t)
	if len(points) != 1 {
		t.Fatalf("points: %v", points)
	}
	age, found := strings.CutPrefix(points[0], "longshore.control.age longshore.control=prod ")
	if s, err := strconv.ParseFloat(age, 64); !found || err != nil || s < 60 || s > 600 {
		t.Errorf("lost a minute ago: %v", points)
	}
	connected = true
	wantPoint(t, r.points(t), "longshore.control.age longshore.control=prod 0")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if points := r.points(t); len(points) != 0 {
		t.Errorf("after stop: %v", points)
	}
}
