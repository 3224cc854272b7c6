package breaker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.RabbitMQ) }

var (
	_ longshore.Watcher      = (*breaker.Breaker)(nil)
	_ longshore.BatchWrapper = (*breaker.Breaker)(nil)
)

func wait(d time.Duration) { <-time.After(d) }

func handle(f func(ctx context.Context, d *longshore.Delivery) error) longshore.Handler {
	return longshore.HandlerFunc(f)
}

func newBreaker(t testing.TB, cfg breaker.Config) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start(t testing.TB, src transport.Source, h longshore.Handler, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	cfg.Logger = zap.NewNop()
	c, err := container.New(src, h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func stop(t testing.TB, c *container.ListenerContainer) {
	t.Helper()
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func publish(t testing.TB, src transport.Source, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("the source cannot publish")
	}
	p, self, err := out.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(ctx) }()
	ms := make([]*longshore.Message, n)
	for i := range ms {
		ms[i] = &longshore.Message{ID: fmt.Sprint(i), Key: fmt.Append(nil, "k", i%20), Body: fmt.Append(nil, i)}
	}
	if err := p.Publish(ctx, self, ms...); err != nil {
		t.Fatal(err)
	}
}

func memoryQueue(b *memory.Broker, cfg memory.QueueConfig) transport.Source { return b.Queue("q", cfg) }

// ledger is a dependency that can be down.
type ledger struct {
	mu       sync.Mutex
	down     bool
	calls    int            // since the last change
	running  int            // now
	most     int            // at once since the last change
	handled  map[string]int // by body
	attempts map[int]int    // how many were handled as which attempt
	asked    int
}

func newLedger() *ledger { return &ledger{handled: map[string]int{}, attempts: map[int]int{}} }

func (l *ledger) set(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.calls, l.most = down, 0, l.running
}

func (l *ledger) ping(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.down {
		return fmt.Errorf("the ledger is down")
	}
	return nil
}

// pay is a handler that needs it.
func (l *ledger) pay(took time.Duration) longshore.Handler {
	return handle(func(_ context.Context, d *longshore.Delivery) error {
		l.mu.Lock()
		l.calls++
		l.running++
		l.most = max(l.most, l.running)
		l.mu.Unlock()
		if took > 0 {
			wait(took)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
		if l.down {
			return fmt.Errorf("the ledger is down")
		}
		l.handled[string(d.Body)]++
		l.attempts[d.Attempt]++
		return nil
	})
}

func (l *ledger) read() (calls, most, handled int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.most, len(l.handled)
}
