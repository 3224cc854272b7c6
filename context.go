package longshore

import (
	"context"
	"sync/atomic"
	"time"
)

// lazyContext is a handler's context that costs nothing until a caller asks for
// its end: a context.WithCancelCause for every message costs more than all the
// rest of the way through a container.
//
// A standard context is made below it on the first Done, so that children made
// by context.WithTimeout find a parent they know (no goroutine for each) and
// context.Cause works.
type lazyContext struct {
	base context.Context //nolint:containedctx // it is a context
	std  atomic.Pointer[contextState]
	of   *Delivery // the delivery whose context it is, for DeliveryFrom
}

// deliveryKey is the key under which a context has its delivery.
type deliveryKey struct{}

// DeliveryFrom returns the delivery whose handler got ctx, or a context made from it; nil if
// there is none. What a middleware's own context hides is not found.
func DeliveryFrom(ctx context.Context) *Delivery {
	d, _ := ctx.Value(deliveryKey{}).(*Delivery)
	return d
}

// WithDelivery returns a context from which [DeliveryFrom] returns d. For containers, which do
// something for a delivery after its handler's context has ended.
func WithDelivery(ctx context.Context, d *Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

type contextState struct {
	ctx    context.Context         //nolint:containedctx // a part of one
	cancel context.CancelCauseFunc // nil: shared by many deliveries and dead already
}

// Two ends without detail are so frequent that all deliveries share them.
var (
	endFinished = deadState(context.Canceled) //nolint:gochecknoglobals // never changes
	endLost     = deadState(ErrLost)          //nolint:gochecknoglobals // never changes
)

func deadState(cause error) *contextState {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return &contextState{ctx: ctx}
}

func (c *lazyContext) parent() context.Context {
	if c.base == nil { // a Delivery that no transport made
		return context.Background()
	}
	return c.base
}

func (c *lazyContext) Deadline() (time.Time, bool) { return c.parent().Deadline() }

func (c *lazyContext) Done() <-chan struct{} {
	if s := c.std.Load(); s != nil {
		return s.ctx.Done()
	}
	ctx, cancel := context.WithCancelCause(c.parent())
	if c.std.CompareAndSwap(nil, &contextState{ctx: ctx, cancel: cancel}) {
		return ctx.Done()
	}
	cancel(nil)
	return c.std.Load().ctx.Done()
}

func (c *lazyContext) Err() error {
	if s := c.std.Load(); s != nil {
		return s.ctx.Err()
	}
	return c.parent().Err()
}

func (c *lazyContext) Value(key any) any {
	if key == (deliveryKey{}) && c.of != nil {
		return c.of
	}
	if s := c.std.Load(); s != nil {
		// The standard library asks for its own context by a private key: the state
		// answers that, the base everything else.
		if v := s.ctx.Value(key); v != nil {
			return v
		}
	}
	return c.parent().Value(key)
}

// end cancels the context, for the first cause given.
func (c *lazyContext) end(cause error) {
	if c.std.Load() == nil && c.std.CompareAndSwap(nil, ended(cause)) {
		return
	}
	if s := c.std.Load(); s.cancel != nil {
		s.cancel(cause)
	}
}

func ended(cause error) *contextState {
	switch cause {
	case context.Canceled: //nolint:errorlint // a wrapped one has more to say and gets a state of its own
		return endFinished
	case ErrLost:
		return endLost
	}
	return deadState(cause)
}
