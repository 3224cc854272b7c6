package container_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handle adapts a function without a context.
func handle(f func(d *longshore.Delivery) error) longshore.Handler {
	return longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { return f(d) })
}

func quiet(cfg container.Config) container.Config {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	return cfg
}

// start makes and starts a container that is stopped at the end of the test.
func start(t testing.TB, src transport.Source, h longshore.Handler, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	c, err := container.New(src, h, quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	run(t, c)
	return c
}

func run(t testing.TB, c *container.ListenerContainer) {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
}

// publish sends bodies, each with the key before its colon.
func publish(t testing.TB, b *memory.Broker, dest string, bodies ...string) {
	t.Helper()
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close(context.Background())
	for _, body := range bodies {
		m := &longshore.Message{ID: body, Body: []byte(body)}
		for i := range body {
			if body[i] == ':' {
				m.Key = []byte(body[:i])
			}
		}
		if err := pub.Publish(context.Background(), dest, m); err != nil {
			t.Fatal(err)
		}
	}
}

func numbered(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("m%d", i)
	}
	return s
}

// eventually waits for a condition, by the clock of the test.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// seen collects what handlers saw.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) add(v string) {
	s.mu.Lock()
	s.list = append(s.list, v)
	s.mu.Unlock()
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.list...)
}

func (s *seen) len() int { return len(s.all()) }

func stop(t testing.TB, c *container.ListenerContainer) *container.Report {
	t.Helper()
	if err := c.Stop(context.Background()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	return c.Report()
}
