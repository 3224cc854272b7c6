package container_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

var _ interface {
	lifecycle.Component
	lifecycle.Budgeter
	lifecycle.Reporter
	lifecycle.DeadLetterRouters
} = (*container.Group)(nil)

var _ interface {
	lifecycle.Component
	lifecycle.Phaser
	lifecycle.Budgeter
} = (*container.Destroyer)(nil)

// perQueue counts what was handled of each queue, and blocks the calls of some.
type perQueue struct {
	mu      sync.Mutex
	handled map[string]int
	running int
	most    int
	block   map[string]chan struct{}
}

func (p *perQueue) handle(ctx context.Context, d *longshore.Delivery) error {
	p.mu.Lock()
	wait := p.block[d.Origin.Topic]
	p.running++
	p.most = max(p.most, p.running)
	p.mu.Unlock()
	var err error
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	if err == nil {
		p.handled[d.Origin.Topic]++
	}
	return err
}

func (p *perQueue) of(queue string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handled[queue]
}

// newGroup makes a group of memory queues.
func newGroup(t *testing.T, b *memory.Broker, p *perQueue, cfg container.GroupConfig, queues ...string) *container.Group {
	t.Helper()
	cfg.Logger = zap.NewNop()
	var sources []transport.Source
	for _, q := range queues {
		sources = append(sources, b.Queue(q, memory.QueueConfig{}))
	}
	g, err := container.NewGroup(longshore.HandlerFunc(p.handle), cfg, sources...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// One queue of a group is paused, stopped, started and inspected, and the others go on. A
// throttle is one limit for all of them.
func TestOneSourceOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		p := &perQueue{handled: map[string]int{}}
		g := newGroup(t, b, p, container.GroupConfig{Config: container.Config{Name: "shop", Throttle: throttle.NewPermits(2), Workers: container.Workers{Min: 4, Max: 4}}}, "orders", "returns")
		must(t, g.Start(t.Context()))
		send := func(orders, returns int) {
			for range orders {
				publish(t, b, "orders", "x")
			}
			for range returns {
				publish(t, b, "returns", "x")
			}
			<-time.After(time.Second)
			synctest.Wait()
		}
		send(5, 5)
		want := func(what string, orders, returns int) {
			t.Helper()
			if o, r := p.of("orders"), p.of("returns"); o != orders || r != returns {
				t.Errorf("%s: %d orders and %d returns handled, want %d and %d", what, o, r, orders, returns)
			}
		}
		want("both", 5, 5)
		must(t, g.PauseSource("orders"))
		send(3, 3)
		want("orders paused", 5, 8)
		must(t, g.ResumeSource("orders"))
		send(0, 0)
		want("resumed", 8, 8)
		must(t, g.StopSource(t.Context(), "returns"))
		send(2, 2)
		want("returns stopped", 10, 8)
		for name, state := range map[string]container.State{"orders": container.StateRunning, "shop/returns": container.StateStopped} {
			if s, err := g.Stats(name); err != nil || s.State != state {
				t.Errorf("%s is %v (%v), want %v", name, s.State, err, state)
			}
		}
		must(t, g.StartSource(t.Context(), "returns"))
		send(0, 0)
		want("returns started again", 10, 10)
		if err := g.StopSource(t.Context(), "nothing"); !errors.Is(err, longshore.CodeNotFound) || !strings.Contains(err.Error(), "shop/orders, shop/returns") {
			t.Errorf("an unknown name: %v", err)
		}
		stop := make(chan struct{})
		p.mu.Lock()
		p.block, p.most = map[string]chan struct{}{"orders": stop, "returns": stop}, 0
		p.mu.Unlock()
		send(6, 6)
		p.mu.Lock()
		most := p.most
		p.mu.Unlock()
		if most != 2 {
			t.Errorf("%d handlers ran at once with 2 permits for all", most)
		}
		close(stop)
		must(t, g.Stop(t.Context()))
		if report := g.DrainReport(); !strings.Contains(report, "shop/orders drained") || !strings.Contains(report, "shop/returns drained") {
			t.Errorf("report %q", report)
		}
		if err := g.Start(t.Context()); err != nil { // all of them once more
			t.Error(err)
		}
		must(t, g.Stop(t.Context()))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A stop in two steps: Stop waits DrainTimeout and says what still runs, Destroy waits as long
// again, and only then handlers are cancelled. What returns in the second step is settled.
func TestGroupStopsInTwoSteps(t *testing.T) {
	for name, like := range map[string]struct {
		returns time.Duration // after the stop began
		first   time.Duration // how long the first step takes
		whole   time.Duration
		stopErr bool
		drain   bool // the second step leaves something behind
		held    string
	}{
		"in the first step":  {3 * time.Second, 3 * time.Second, 3 * time.Second, false, false, "ready 0, unsettled 0, delayed 0, acked 1"},
		"in the second step": {8 * time.Second, 5 * time.Second, 8 * time.Second, true, false, "ready 0, unsettled 0, delayed 0, acked 1"},
		"never":              {time.Hour, 5 * time.Second, 10 * time.Second, true, false, "ready 1, unsettled 0, delayed 0, acked 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				p := &perQueue{handled: map[string]int{}, block: map[string]chan struct{}{"slow": make(chan struct{})}}
				g := newGroup(t, b, p, container.GroupConfig{TwoSteps: true, Config: container.Config{DrainTimeout: 5 * time.Second, CancelGrace: 2 * time.Second}}, "slow", "fast")
				must(t, g.Start(t.Context()))
				publish(t, b, "slow", "x")
				publish(t, b, "fast", "x")
				synctest.Wait()
				begin := time.Now()
				time.AfterFunc(like.returns, func() { close(p.block["slow"]) })
				err := g.Stop(t.Context())
				if took := time.Since(begin); took != like.first {
					t.Errorf("the first step took %v, want %v", took, like.first)
				}
				var unfinished *container.UnfinishedError
				if errors.As(err, &unfinished) != like.stopErr {
					t.Errorf("first step: %v", err)
				}
				if like.stopErr && (unfinished.Busy["slow"] != 1 || unfinished.Busy["fast"] != 0 || !strings.Contains(g.DrainReport(), "1 of slow")) {
					t.Errorf("first step: %v, report %q", err, g.DrainReport())
				}
				publish(t, b, "fast", "late") // the intake is over
				err = g.Destroy(t.Context())
				if took := time.Since(begin); took < like.whole || took > like.whole+time.Second {
					t.Errorf("both steps took %v, want %v", took, like.whole)
				}
				if (err != nil) != like.drain {
					t.Errorf("second step: %v", err)
				}
				if !strings.Contains(g.DrainReport(), "slow drained") {
					t.Errorf("report %q", g.DrainReport())
				}
				wantHeld(t, b, "slow", like.held)
				if p.of("fast") != 1 {
					t.Errorf("%d handled of fast", p.of("fast"))
				}
			})
		})
	}
}

// As components the two steps lie in two phases, and what is between them stops between them.
func TestTwoStepsInALifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		p := &perQueue{handled: map[string]int{}, block: map[string]chan struct{}{"slow": make(chan struct{})}}
		g := newGroup(t, b, p, container.GroupConfig{TwoSteps: true, Config: container.Config{Name: "g", DrainTimeout: 5 * time.Second}}, "slow")
		var order []string
		between := lifecycle.Hook("between", lifecycle.PhaseAdmin, nil, func(context.Context) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			order = append(order, fmt.Sprintf("between with %d busy", p.running))
			return nil
		})
		m, err := lifecycle.New(lifecycle.Config{Logger: zap.NewNop()}, g, between, g.Destroyer(lifecycle.PhaseRelays))
		must(t, err)
		must(t, m.Start(t.Context()))
		publish(t, b, "slow", "x")
		synctest.Wait()
		time.AfterFunc(7*time.Second, func() { close(p.block["slow"]) })
		_ = m.Stop(t.Context())
		if len(order) != 1 || order[0] != "between with 1 busy" || p.of("slow") != 1 {
			t.Errorf("%v, %d handled", order, p.of("slow"))
		}
	})
}

// Mistakes are reported for all sources at once.
func TestGroupRefusals(t *testing.T) {
	b := memory.New(memory.Config{})
	h := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
	q := func(name string) transport.Source { return b.Queue(name, memory.QueueConfig{}) }
	for name, c := range map[string]struct {
		cfg     container.GroupConfig
		sources []transport.Source
		words   []string
	}{
		"no source":        {container.GroupConfig{}, nil, []string{"sources are missing"}},
		"one name twice":   {container.GroupConfig{}, []transport.Source{q("a"), q("a")}, []string{`"a" twice`}},
		"no time":          {container.GroupConfig{TwoSteps: true, Config: container.Config{DrainTimeout: -1}}, []transport.Source{q("a")}, []string{"TwoSteps", "DrainTimeout"}},
		"each with errors": {container.GroupConfig{Config: container.Config{Lookahead: -5}}, []transport.Source{q("a"), q("b")}, []string{`"a"`, `"b"`}},
	} {
		_, err := container.NewGroup(h, c.cfg, c.sources...)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", name, w, err)
			}
		}
	}
}

// A source that is started again after a stop in two steps is stopped by the next one.
func TestGroupIsStoppedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		p := &perQueue{handled: map[string]int{}, block: map[string]chan struct{}{}}
		g := newGroup(t, b, p, container.GroupConfig{TwoSteps: true}, "one", "two")
		must(t, g.Start(t.Context()))
		must(t, g.Stop(t.Context()))
		must(t, g.Destroy(t.Context()))
		must(t, g.StartSource(t.Context(), "two"))
		one, err := g.Container("two")
		must(t, err)
		must(t, g.Stop(t.Context()))
		must(t, g.Destroy(t.Context()))
		if s := one.State(); s != container.StateStopped {
			t.Errorf("after the second stop it is %v", s)
		}
	})
}

// A source that is started again between the two steps is stopped by the second, and what still
// runs after the first is an event like others.
func TestSecondStepStopsWhatWasStartedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		p := &perQueue{handled: map[string]int{}, block: map[string]chan struct{}{"slow": make(chan struct{})}}
		var mu sync.Mutex
		var told []string
		g := newGroup(t, b, p, container.GroupConfig{TwoSteps: true, Config: container.Config{DrainTimeout: 5 * time.Second,
			OnEvent: func(e container.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == container.EventNotice {
					told = append(told, e.Container+": "+e.Text)
				}
			}}}, "slow", "fast")
		must(t, g.Start(t.Context()))
		publish(t, b, "slow", "x")
		synctest.Wait()
		begun := time.Now()
		var unfinished *container.UnfinishedError
		if err := g.Stop(t.Context()); !errors.As(err, &unfinished) || unfinished.Step != time.Since(begun) {
			t.Errorf("first step: %v", err)
		}
		must(t, g.StartSource(t.Context(), "fast"))
		time.AfterFunc(time.Second, func() { close(p.block["slow"]) })
		must(t, g.Destroy(t.Context()))
		for _, c := range g.Containers() {
			if s := c.State(); s != container.StateStopped {
				t.Errorf("%s is %v after the second step", c.Name(), s)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.ContainsFunc(told, func(line string) bool {
			return strings.HasPrefix(line, "slow: the first of two steps of the stop is over after 5s: 1 handlers")
		}) {
			t.Errorf("told %q", told)
		}
	})
}

// Each source has what Each says of it: a name, workers, and a place for its dead letters, which
// must not lead back into the group.
func TestEachSourceOfAGroupHasItsOwnDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		sources := []transport.Source{b.Queue("orders", memory.QueueConfig{}), b.Queue("returns", memory.QueueConfig{})}
		to := map[string]string{"orders": "orders.dlq", "returns": "returns.dlq"}
		cfg := container.GroupConfig{Config: container.Config{Name: "shop", Logger: zap.NewNop()}, Each: func(source string, c *container.Config) {
			c.DeadLetter.To = to[source]
			c.Name = "shop-" + source
			c.Workers.Min = len(source)
		}}
		batch := func(_ context.Context, ds []*longshore.Delivery) error { return longshore.Reject(errors.New("no")) }
		g, err := container.NewBatchGroup(batch, cfg, sources...)
		must(t, err)
		must(t, g.Start(t.Context()))
		publish(t, b, "orders", "x")
		publish(t, b, "returns", "x")
		<-time.After(time.Second)
		synctest.Wait()
		for source, dead := range to {
			if q := b.Inspect(dead); q.Ready != 1 {
				t.Errorf("%s holds %+v", dead, q)
			}
			if s, err := g.Stats("shop-" + source); err != nil || s.Workers != len(source) {
				t.Errorf("%s: %+v, %v", source, s, err)
			}
		}
		must(t, g.Stop(t.Context()))
		to["orders"], to["returns"] = "returns", "orders"
		round, err := container.NewBatchGroup(batch, cfg, sources...)
		must(t, err)
		if _, err := lifecycle.New(lifecycle.Config{Logger: zap.NewNop()}, round); err == nil || !strings.Contains(err.Error(), "shop-orders") || !strings.Contains(err.Error(), "shop-returns") {
			t.Errorf("dead letters that go round inside a group: %v", err)
		}
	})
}
