package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// account is the service's own record: what was ordered, and what has had its effect.
type account struct {
	mu      sync.Mutex
	ordered map[string]bool
	effects map[string]int // the inbox: a copy has no second effect
	copies  int
	last    time.Time
	gap     time.Duration // the longest time without an effect
}

func newAccount() *account { return &account{ordered: map[string]bool{}, effects: map[string]int{}} }

func (a *account) order(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ordered[id] = true
}

// Handle is the consumers' handler, behind an inbox.
func (a *account) Handle(_ context.Context, d *longshore.Delivery) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, now := longshore.Identity(d), time.Now()
	if a.effects[id] > 0 {
		a.copies++
		return nil
	}
	a.effects[id]++
	if !a.last.IsZero() {
		a.gap = max(a.gap, now.Sub(a.last))
	}
	a.last = now
	return nil
}

// missing is how many orders have had no effect.
func (a *account) missing() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.ordered {
		if a.effects[id] == 0 {
			n++
		}
	}
	return n
}

// sum is a line about it, and gap is the longest time without an effect: consumers may still run.
func (a *account) sum() (text string, gap time.Duration) {
	missing := a.missing()
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("orders %d, without effect %d, copies without a second effect %d, longest pause %.1fs", len(a.ordered), missing, a.copies, a.gap.Seconds()), a.gap
}

// outlet is where producers write.
type outlet struct {
	pub  transport.Publisher
	dest string
}

// producers write to one side until they are switched to the other.
type producers struct {
	side atomic.Pointer[outlet]
	a    *account
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// start runs two producers that write rate orders a second together.
func (p *producers) start(ctx context.Context, rate int) {
	ctx, p.stop = context.WithCancel(ctx)
	for who := range 2 {
		p.wg.Go(func() {
			t := time.NewTicker(2 * time.Second / time.Duration(rate))
			defer t.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-t.C:
				}
				id := fmt.Sprintf("order-%d-%d", who, n)
				p.a.order(id)
				p.publish(ctx, &longshore.Message{ID: id, Key: fmt.Appendf(nil, "customer-%d", n%50), Body: []byte(`{"paid":true}`)})
			}
		})
	}
}

// publish tries until the order is confirmed: a copy has the same id. It ends the order that it
// has begun when the producers are stopped.
func (p *producers) publish(ctx context.Context, m *longshore.Message) {
	for {
		to := p.side.Load()
		if err := to.pub.Publish(context.WithoutCancel(ctx), to.dest, m); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (p *producers) end() {
	p.stop()
	p.wg.Wait()
}

// crew is the consumers of one side.
type crew struct {
	name string
	src  transport.Source
	a    *account
	all  []*container.ListenerContainer
}

// start runs three consumers.
func (c *crew) start(ctx context.Context) error {
	for n := range 3 {
		l, err := container.New(c.src, c.a, container.Config{Name: fmt.Sprint(c.name, "-", n), DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		if err := l.Start(ctx); err != nil {
			return err
		}
		c.all = append(c.all, l)
	}
	return nil
}

// end drains them.
func (c *crew) end(ctx context.Context) error {
	errs := make([]error, len(c.all))
	var wg sync.WaitGroup
	for i, l := range c.all {
		wg.Go(func() { errs[i] = l.Stop(ctx) })
	}
	wg.Wait()
	c.all = nil
	return errors.Join(errs...)
}
