package mutex

import (
	"context"
	"sync"
)

// afterCommit is the work to do once the transaction in the context is committed:
// publishing what was added to an outbox in it.
type afterCommit struct {
	mu  sync.Mutex
	fns []func(context.Context)
}

type afterKey struct{}

func (a *afterCommit) add(fn func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fns = append(a.fns, fn)
}

func (a *afterCommit) run(ctx context.Context) {
	a.mu.Lock()
	fns := a.fns
	a.fns = nil
	a.mu.Unlock()
	for _, fn := range fns {
		fn(ctx)
	}
}

func afterFrom(ctx context.Context) *afterCommit {
	a, _ := ctx.Value(afterKey{}).(*afterCommit)
	return a
}
