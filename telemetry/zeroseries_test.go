package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
)

// Prometheus's increase sees changes only: what happens for the first time must change a
// series that was there before.
func TestWhatHappensForTheFirstTimeChangesASeries(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(_ context.Context, d *longshore.Delivery) error {
		switch {
		case d.ID == "bad":
			return longshore.Reject(errors.New("never"))
		case d.ID == "again" && d.Attempt == 1:
			return longshore.Retry(errors.New("not yet"), time.Millisecond)
		}
		return nil
	}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Reopen: container.Backoff{Initial: time.Millisecond}})
	stop, err := r.tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	containertest.PublishMessages(t, c, &longshore.Message{ID: "good"})
	containertest.WaitIdle(t, c)
	before := r.points(t)
	r.broker.FailSettle(1, errors.New("refused"))
	containertest.PublishMessages(t, c, &longshore.Message{ID: "good"})
	eventually(t, func() bool { return len(c.Stats().SettleFailures) > 0 })
	containertest.PublishMessages(t, c, &longshore.Message{ID: "bad"}, &longshore.Message{ID: "again"})
	containertest.WaitIdle(t, c)
	r.broker.Drop("orders")
	eventually(t, func() bool { s := c.Stats(); return len(s.Reopens) > 0 && s.Ready })
	seen := changed(t, before, r.points(t))
	for _, name := range []string{"longshore.deadletters", "longshore.settle.failures", "longshore.reopens", "longshore.verdicts", "longshore.attempts"} {
		if !slices.Contains(seen, name) {
			t.Errorf("%s has not changed: %q", name, seen)
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed(t, before, r.points(t)) // with the drain
}

// changed are the names of the totals that were 0 and are not any more. Each has to have
// been there.
func changed(t *testing.T, before, after []string) (names []string) {
	t.Helper()
	for _, p := range after {
		series, value := p[:strings.LastIndexByte(p, ' ')], p[strings.LastIndexByte(p, ' ')+1:]
		name, _, _ := strings.Cut(series, " ")
		switch name {
		case "longshore.deadletters", "longshore.settle.failures", "longshore.reopens", "longshore.verdicts", "longshore.attempts", "longshore.drain.deliveries":
		default:
			continue
		}
		was := slices.ContainsFunc(before, func(b string) bool { return strings.HasPrefix(b, series+" ") })
		if !was {
			t.Errorf("%s begins with %s", series, value)
		}
		if value != "0" && slices.Contains(before, series+" 0") {
			names = append(names, name)
		}
	}
	return names
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not come to that")
		}
	}
}

// A policy's words are labels: each is counted for itself, and there are no more than
// were ever used.
func TestDecisionsHaveTheirReasons(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(context.Context, *longshore.Delivery) error { return nil }, container.Config{Workers: container.Workers{Min: 1, Max: 8}})
	stop, err := r.tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	const by = "longshore.scale.decisions direction="
	before := r.points(t)
	for _, want := range []string{by + "up longshore.container=orders messaging.destination.name=orders messaging.system=memory reason=demand 0",
		by + "down longshore.container=orders messaging.destination.name=orders messaging.system=memory reason=idle 0",
		"longshore.skipped longshore.container=orders messaging.destination.name=orders messaging.system=memory reason=expired 0"} {
		wantPoint(t, before, want)
	}
	if err := c.Scale(3, 8); err != nil {
		t.Fatal(err)
	}
	if err := c.Scale(1, 2); err != nil {
		t.Fatal(err)
	}
	after := r.points(t)
	wantPoint(t, after, by+"up longshore.container=orders messaging.destination.name=orders messaging.system=memory reason=bounds changed 1")
	wantPoint(t, after, by+"down longshore.container=orders messaging.destination.name=orders messaging.system=memory reason=bounds changed 1")
	if s := c.Stats(); s.Scaling.Reasons["bounds changed"] != (container.Moves{Ups: 1, Downs: 1}) {
		t.Errorf("%+v", s.Scaling.Reasons)
	}
}
