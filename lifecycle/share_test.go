package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N32
func TestShortTimeIsSharedInProportion(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		left, own time.Duration
		later     []time.Duration
		want      time.Duration
	}{
		{40 * s, 22 * s, []time.Duration{s, 15 * s}, 24 * s},
		{38 * s, 22 * s, []time.Duration{s, 15 * s}, 22 * s},
		{19 * s, 22 * s, []time.Duration{s, 15 * s}, 11 * s},
		{5 * s, 10 * s, []time.Duration{10 * s}, 2500 * time.Millisecond},
		{5 * s, 22 * s, nil, 5 * s},
		{5 * s, 0, nil, 5 * s},
		{0, 22 * s, []time.Duration{s}, 0},
		{-s, 22 * s, []time.Duration{s}, 0},
	} {
		if got := share(c.left, c.own, c.later); got != c.want {
			t.Errorf("%v for %v before %v: %v, want %v", c.left, c.own, c.later, got, c.want)
		}
	}
}

// consuming is a container on a memory broker with n messages in its queue.
func consuming(t *testing.T, name string, n int, handle func(context.Context) error) *container.ListenerContainer {
	t.Helper()
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue(name, memory.QueueConfig{}),
		longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error { return handle(ctx) }),
		container.Config{Workers: container.Workers{Min: max(n, 1), Max: max(n, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := pub.Publish(t.Context(), name, &longshore.Message{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// F-N32: handlers of two seconds end within a stop of five, although the relay might take
// fifteen; what the containers leave goes to the relay.
func TestHandlersGetTheirShareOfAShortStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, cut atomic.Int32
		c := consuming(t, "orders", 4, func(ctx context.Context) error {
			running.Add(1)
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
				cut.Add(1)
			}
			return nil
		})
		j := &journal{}
		relay := &part{journal: j, name: "relay", phase: PhaseRelays, budget: 15 * time.Second, stopFor: 2 * time.Second}
		m, err := New(Config{StopTimeout: 45 * time.Second}, c, relay, &part{journal: j, name: "db"})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		hook := &Hosted{m: m}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := hook.Stop(ctx); err != nil || cut.Load() > 0 || running.Load() != 4 {
			t.Errorf("%v; %d of %d handlers were cut", err, cut.Load(), running.Load())
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if want := []string{"stop relay", "stop db"}; !slices.Equal(j.lines[2:], want) {
			t.Errorf("%v", j.lines)
		}
	})
}

// F-N32: the time of phases that end early goes to those after them.
func TestTimeThatAPhaseDoesNotUseGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		m, err := New(Config{StopTimeout: 45 * time.Second},
			&part{journal: j, name: "db", budget: time.Second},
			&part{journal: j, name: "relay", phase: 1, budget: 15 * time.Second, stopFor: 3500 * time.Millisecond},
			&part{journal: j, name: "orders", phase: 2, budget: 22 * time.Second, stopFor: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := m.Stop(ctx); err != nil {
			t.Errorf("the relay had 3.75 s of the 4 s that were left: %v", err)
		}
	})
}

// A drain that left something behind says so by its code, whatever its cause was.
func TestDrainErrorHasItsOwnCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		c := consuming(t, "orders", 1, func(context.Context) error { <-end; return nil })
		m, err := New(Config{}, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		err = m.Stop(context.Background())
		var e *longshore.Error
		if longshore.CodeOf(err) != longshore.CodeDrain || !errors.As(err, &e) || e.Hint == "" || e.Source != "orders" {
			t.Errorf("code %q: %v", longshore.CodeOf(err), err)
		}
		close(end)
		synctest.Wait()
	})
}
