package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// observer records what a consumer tells.
type observer struct {
	mu     sync.Mutex
	lost   []*longshore.Delivery
	failed []longshore.Settlement
	down   []error
	events []transport.EventKind
}

func (o *observer) Lost(ds []*longshore.Delivery, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = append(o.lost, ds...)
}

func (o *observer) SettleFailed(_ *longshore.Delivery, s longshore.Settlement, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, s)
}

func (o *observer) Down(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = append(o.down, err)
}

func (o *observer) Event(e transport.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e.Kind)
}

func (o *observer) counts() (lost, failed, down int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.lost), len(o.failed), len(o.down)
}

func publish(t testing.TB, b *Broker, dest string, bodies ...string) {
	t.Helper()
	p, err := b.Publisher(PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if err := p.Publish(t.Context(), dest, &longshore.Message{Key: []byte(body[:1]), Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, s transport.Source, o transport.OpenOptions) transport.Consumer {
	t.Helper()
	c, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// receive takes exactly n deliveries, in as many calls as it takes.
func receive(t testing.TB, c transport.Consumer, n int) []*longshore.Delivery {
	t.Helper()
	var ds []*longshore.Delivery
	for len(ds) < n {
		got, err := c.Receive(t.Context(), n-len(ds))
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, got...)
	}
	return ds
}

func bodies(ds []*longshore.Delivery) string {
	s := ""
	for i, d := range ds {
		if i > 0 {
			s += " "
		}
		s += string(d.Body)
	}
	return s
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func state(b *Broker, name string) string {
	i := b.Inspect(name)
	return fmt.Sprintf("ready %d unsettled %d delayed %d", i.Ready, i.Unsettled, i.Delayed)
}
