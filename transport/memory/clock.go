package memory

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
)

// travel waits for as long as what was accepted needs to reach the broker.
func (b *Broker) travel(ctx context.Context, s *settlements) error {
	b.mu.Lock()
	n := len(s.accepted)
	b.mu.Unlock()
	if n == 0 {
		return nil
	}
	return sleep(ctx, b.clock, b.faults.delay(OpSettle))
}

// sleep waits for d on the clock; it returns ctx's error if that ends first.
func sleep(ctx context.Context, clock longshore.Clock, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	done := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(done) })
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
