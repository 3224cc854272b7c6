package container

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore"
)

// requestedVerdict holds what handlers, or operators, requestedVerdict for by a verb that waits for their
// return. The handler's result says it too, so that middlewares see it: to one that
// commits, or remembers what is done, nil after a Nack would be a success. It is kept
// to the end of the chain: a middleware may call the handler again.
type requestedVerdict struct {
	n  atomic.Int64                  // nearly always 0: what the hot path looks at
	mu sync.Mutex                    // guards of
	of map[*longshore.Delivery]error // the verdict for each delivery whose handler has not returned
}

func (a *requestedVerdict) note(d *longshore.Delivery, verdict error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[*longshore.Delivery]error{}
	}
	a.of[d] = verdict
	a.n.Store(int64(len(a.of)))
}

func (a *requestedVerdict) forget(d *longshore.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, d)
	a.n.Store(int64(len(a.of)))
}

func (a *requestedVerdict) by(d *longshore.Delivery) error {
	if a.n.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[d]
}

// tells is the innermost link of a chain.
func (a *requestedVerdict) tells(h longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if err := h.Handle(ctx, d); err != nil {
			return err
		}
		return a.by(d)
	})
}

// tellsBatch is that of a chain for batches.
func (a *requestedVerdict) tellsBatch(h longshore.BatchHandlerFunc) longshore.BatchHandlerFunc {
	return func(ctx context.Context, ds []*longshore.Delivery) error {
		err := h(ctx, ds)
		var each longshore.BatchError
		if a.n.Load() == 0 || err != nil && !errors.As(err, &each) {
			return err
		}
		found := longshore.BatchError{}
		for i, d := range ds {
			if verdict := a.by(d); verdict != nil && each[i] == nil {
				found[i] = verdict
			}
		}
		if len(found) == 0 {
			return err
		}
		for i, e := range each {
			if e != nil {
				found[i] = e
			}
		}
		return found
	}
}
