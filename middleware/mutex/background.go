package mutex

import (
	"context"
	"sync"
)

// background runs loops from start to stop: what a relay and a purger are to a
// lifecycle.Manager.
type background struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// start begins n loops, numbered from 0, unless they run already.
func (b *background) start(ctx context.Context, n int, loop func(ctx context.Context, i int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // that of the start ends with it
	done := make(chan struct{})
	b.cancel, b.done = cancel, done
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { loop(ctx, i) })
	}
	go func() {
		group.Wait()
		close(done)
	}()
}

// stop ends the loops and waits for them, as long as ctx allows.
func (b *background) stop(ctx context.Context) error {
	b.mu.Lock()
	cancel, done := b.cancel, b.done
	b.cancel = nil
	b.mu.Unlock()
	if done == nil {
		return nil
	}
	if cancel != nil {
		cancel()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *background) running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancel != nil
}
