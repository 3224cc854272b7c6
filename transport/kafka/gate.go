package kafka

import (
	"context"
	"sync"
)

// gate makes "poll and register" one step for those who take partitions away: a batch that
// is polled under one assignment must not be registered under the next (records were lost
// that way). franz-go's own gate, BlockRebalanceOnPoll, would also hold up the partitions
// that stay while others are drained.
type gate struct {
	mu sync.Mutex // held while polling and registering, or changing the assignment

	state   sync.Mutex         // guards what follows
	waiting int                // who waits to enter, or is in
	cancel  context.CancelFunc // cuts the running poll short
	free    chan struct{}      // closed when no caller waits; nil while none does
}

// enter waits for the poll that runs, which is cut short, and keeps others out.
func (g *gate) enter() {
	g.state.Lock()
	g.waiting++
	if g.free == nil {
		g.free = make(chan struct{})
	}
	if g.cancel != nil {
		g.cancel()
	}
	g.state.Unlock()
	g.mu.Lock()
}

// leave lets polls run again once no other caller waits to enter.
func (g *gate) leave() {
	g.mu.Unlock()
	g.state.Lock()
	defer g.state.Unlock()
	if g.waiting--; g.waiting == 0 {
		close(g.free)
		g.free = nil
	}
}

// poll runs f unless a caller waits to enter, who comes first.
func (g *gate) poll(ctx context.Context, f func(ctx context.Context)) {
	g.state.Lock()
	if free := g.free; free != nil {
		g.state.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.cancel = cancel
	g.state.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	f(ctx)
}
