package mutex

import (
	"context"
	"slices"
	"sync"
)

// gate keeps one connection of a small pool free. If every connection had a handler
// in it, and one of them asked the pool for another, all would wait for each other.
// Who waits, waits in turn.
type gate struct {
	mu      sync.Mutex
	inside  int
	waiting []chan struct{}
}

// enter waits for a place among limit; 0 means no limit.
func (g *gate) enter(ctx context.Context, limit int) error {
	g.mu.Lock()
	if limit <= 0 || (g.inside < limit && len(g.waiting) == 0) {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn: // the place was handed over
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, turn)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 { // handed over at the same moment
		g.leave()
	}
	return context.Cause(ctx)
}

// leave hands the place to who waits longest.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.inside--
		return
	}
	close(g.waiting[0])
	g.waiting = slices.Delete(g.waiting, 0, 1)
}

// places is how many transactions there may be at once.
func (m *Mutex) places() int {
	if n := m.store.MaxConns(); n > 0 {
		return max(n-1, 1)
	}
	return 0
}
