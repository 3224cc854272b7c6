package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// ledger counts for each message how many acks of it are in force.
type ledger struct {
	mu    sync.Mutex
	acked map[string]int
}

func (l *ledger) add(body []byte, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[string(body)] += n
}

// Lost, SettleFailed, Down and Event make it the observer of all consumers: an
// accepted ack that failed is in force no more.
func (l *ledger) Lost([]*longshore.Delivery, error) {}
func (l *ledger) Down(error)                        {}
func (l *ledger) Event(transport.Event)             {}
func (l *ledger) SettleFailed(d *longshore.Delivery, s longshore.Settlement, _ error) {
	if s.Verb == longshore.VerbAck {
		l.add(d.Body, -1)
	}
}

// Consumers come and go, connections break, leases end, settlements fail: in the
// end each message was acked once, and none is left.
func TestNothingIsLostOrAckedTwiceInChaos(t *testing.T) {
	for name, cfg := range map[string]QueueConfig{
		"at-once": {Prefetch: 20},
		"batched": {Prefetch: 20, SettleLinger: time.Millisecond},
		"fifo":    {Prefetch: 20, FIFO: true, Lease: 3 * time.Millisecond},
		"pull":    {Pull: true, SingleActive: true},
	} {
		t.Run(name, func(t *testing.T) { chaos(t, cfg) })
	}
}

func chaos(t *testing.T, cfg QueueConfig) {
	const n = 3000
	b := New(Config{})
	src := b.Queue("q", cfg)
	book := &ledger{acked: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := func() bool { return b.Inspect("q").Acked >= n }
	var all sync.WaitGroup
	all.Go(func() {
		p, _ := b.Publisher(PublisherConfig{})
		for i := range n {
			m := &longshore.Message{Key: fmt.Appendf(nil, "k%d", i%50), Body: fmt.Appendf(nil, "%d", i)}
			if err := p.Publish(ctx, "q", m); err != nil {
				t.Error(err)
			}
		}
		_ = p.Close(ctx)
	})
	for range 4 {
		all.Go(func() {
			for !done() && ctx.Err() == nil {
				life(ctx, t, src, book)
			}
		})
	}
	all.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; !done() && ctx.Err() == nil; i++ {
			switch <-tick.C; i % 3 {
			case 0:
				b.Drop()
			case 1:
				b.TakeBack("q")
			case 2:
				b.FailSettle(3, errors.New("disk full"))
			}
		}
	})
	all.Wait()
	if got := b.Inspect("q"); got.Acked != n || got.Ready+got.Unsettled+got.Delayed != 0 || b.Connections() != 0 {
		t.Errorf("at the end: %+v, %d connections", got, b.Connections())
	}
	for i := range n {
		if got := book.acked[fmt.Sprint(i)]; got != 1 {
			t.Errorf("message %d: %d acks in force", i, got)
		}
	}
}

// life is one consumer from Open to Close.
func life(ctx context.Context, t *testing.T, src transport.Source, book *ledger) {
	c, err := src.Open(ctx, transport.OpenOptions{Observer: book})
	if err != nil {
		t.Error(err)
		return
	}
	for range 20 + rand.IntN(200) {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		ds, err := c.Receive(short, 1+rand.IntN(5))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		for _, d := range ds {
			settleAnyhow(ctx, d, book)
		}
	}
	if rand.IntN(2) == 0 {
		_ = c.Cancel(ctx)
		_ = c.Release(ctx)
	}
	_ = c.Flush(ctx) // failures are in the ledger
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

func settleAnyhow(ctx context.Context, d *longshore.Delivery, book *ledger) {
	switch rand.IntN(12) {
	case 0:
		_ = d.Nack(ctx, 0)
	case 1:
		_ = d.Nack(ctx, time.Millisecond)
	case 2: // forgotten
	default:
		if d.Ack(ctx) == nil {
			book.add(d.Body, 1)
		}
	}
}
