package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// A component that is added while the manager runs is stopped with the others, in its phase.
func TestAddedComponentTakesPartInTheStop(t *testing.T) {
	j := &journal{}
	m, err := New(Config{}, &part{journal: j, name: "db"}, &part{journal: j, name: "orders", phase: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	early, late := &part{journal: j, name: "pub", phase: 1}, &part{journal: j, name: "audit", phase: 3}
	if err := errors.Join(m.Add(ctx, early), m.Start(ctx), m.Add(ctx, late)); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(ctx, &part{journal: j, name: "audit"}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("a name twice: %v", err)
	}
	if err := m.Add(ctx, &part{journal: j, name: "slow", budget: time.Minute}); !errors.Is(err, longshore.CodeDrainBudget) {
		t.Errorf("over the budget: %v", err)
	}
	if err := m.Add(ctx, &part{journal: j, name: "bad", startErr: errors.New("boom")}); err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("one that fails: %v", err)
	}
	again := &part{journal: j, name: "audit", phase: 3}
	if err := errors.Join(m.Remove(ctx, "audit"), m.Remove(ctx, "none"), m.Add(ctx, again)); err != nil {
		t.Error(err)
	}
	if err := m.Stop(ctx); err != nil {
		t.Error(err)
	}
	want := []string{"start db", "start pub", "start orders", "start audit", "failed bad", "stop audit", "start audit",
		"stop audit", "stop orders", "stop pub", "stop db"}
	if !slices.Equal(j.lines, want) {
		t.Errorf("got %v\nwant %v", j.lines, want)
	}
}

// A stop during an Add ends it, and nothing of it is left.
func TestStopDuringAnAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		m, err := New(Config{}, &part{journal: j, name: "db"})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		added := make(chan error, 1)
		go func() { added <- m.Add(context.Background(), blackHole("orders")) }()
		synctest.Wait()
		if err := m.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := <-added; !errors.Is(err, context.Canceled) {
			t.Errorf("add: %v", err)
		}
	})
}

// A timeout that grows takes what a fixed one refuses.
func TestGrowingStopTimeout(t *testing.T) {
	slow := &part{journal: &journal{}, name: "relay", phase: PhaseRelays, budget: 37 * time.Second}
	m, err := New(Config{Grow: true}, slow)
	if err != nil || m.StopTimeout() != 40*time.Second {
		t.Errorf("%v, %v", m.StopTimeout(), err)
	}
	if _, err := New(Config{Setting: "lifecycle.stop_timeout"}, slow); err == nil || !strings.Contains(err.Error(), "set lifecycle.stop_timeout to 40s") {
		t.Errorf("%v", err)
	}
}
