package interop_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/middleware/router"
	"github.com/longshore-go/longshore/middleware/spring"
	"github.com/longshore-go/longshore/transport"
)

type orderPaid struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

type orderCanceled struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// got is what a handler got.
type got struct {
	by    string // the handler
	value any
	m     longshore.Message
	try   int
}

// ledger has them in their order.
type ledger struct {
	mu   sync.Mutex
	all  []got
	fail func(g got, nth int) error // nth call of all; nil: none fails
	want int
	done chan struct{}
}

func (l *ledger) note(by string, v any, d *longshore.Delivery) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := got{by: by, value: v, m: d.Message, try: d.Attempt}
	l.all = append(l.all, g)
	if len(l.all) == l.want {
		close(l.done)
	}
	if l.fail != nil {
		return l.fail(g, len(l.all))
	}
	return nil
}

// of are those with the header case.
func (l *ledger) of(name string) (gs []got) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.all {
		if g.m.Headers.String("case") == name {
			gs = append(gs, g)
		}
	}
	return gs
}

// consumed runs a service beside Spring's until its handlers were called want times.
func consumed(t *testing.T, src transport.Source, want int, fail func(g got, nth int) error, dead container.DeadLetter) *ledger {
	t.Helper()
	l := &ledger{want: want, fail: fail, done: make(chan struct{})}
	codec := longshore.ContentTypes{Types: map[string]longshore.Codec{"application/json": longshore.JSON{}}, Default: longshore.JSON{}}
	other := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { return l.note("other", nil, d) })
	r, err := router.New(router.Config{Fallback: other},
		router.Type("order.paid", longshore.Typed(codec, func(_ context.Context, o orderPaid, d *longshore.Delivery) error { return l.note("paid", o, d) })),
		router.Type("order.canceled", longshore.Typed(codec, func(_ context.Context, o orderCanceled, d *longshore.Delivery) error { return l.note("canceled", o, d) })))
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.New(src, r, container.Config{Workers: container.Workers{Min: 1, Max: 1}, DeadLetter: dead, Logger: zap.NewNop(),
		Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}},
		Middleware: []longshore.Middleware{middleware.Decode(middleware.DecodeConfig{}), spring.Batches(),
			spring.Headers(spring.HeadersConfig{Types: map[string]string{"com.acme.OrderPaid": "order.paid"}})}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(bounded(t)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.done:
	case <-time.After(patience):
		t.Errorf("%d of %d calls after %v", len(l.all), want, patience)
	}
	if err := c.Stop(bounded(t)); err != nil {
		t.Error(err)
	}
	return l
}
