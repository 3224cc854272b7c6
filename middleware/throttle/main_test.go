package throttle_test

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
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.RabbitMQ, brokertest.KafkaNodes) }

// wait passes time; inside synctest it costs none.
func wait(d time.Duration) { <-time.After(d) }

func handle(f func(ctx context.Context, d *longshore.Delivery) error) longshore.Handler {
	return longshore.HandlerFunc(f)
}

// start runs a container until the test ends.
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

func publish(t testing.TB, b *memory.Broker, dest string, msgs ...*longshore.Message) {
	t.Helper()
	p, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	if err := p.Publish(context.Background(), dest, msgs...); err != nil {
		t.Fatal(err)
	}
}

func numbered(n int) []*longshore.Message {
	ms := make([]*longshore.Message, n)
	for i := range ms {
		ms[i] = &longshore.Message{ID: fmt.Sprint(i), Body: fmt.Append(nil, i)}
	}
	return ms
}

// gauge counts what runs now and at most.
type gauge struct {
	mu        sync.Mutex
	now, most int
	total     int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.total++
	g.most = max(g.most, g.now)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// read returns what runs, the most since the last read, and all that began.
func (g *gauge) read() (now, most, total int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most = g.most
	g.most = g.now
	return g.now, most, g.total
}
