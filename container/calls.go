package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const (
	// briefly is the time for a call that only informs the transport.
	briefly = 2 * time.Second
	// overtime is how long a call is still waited for after its context has ended: one
	// that keeps its promise returns within it, and its result counts.
	overtime = 50 * time.Millisecond
)

// calls makes calls to a transport. Each ends shortly after its time is over, whatever
// the transport does: one that breaks its promise to return must not take the container
// with it.
type calls struct {
	clock   longshore.Clock // the container's, so that tests decide about time
	name    string          // of the container, for errors
	source  string          // what it consumes from, for errors
	opening context.Context //nolint:containedctx // ends when a stop begins; lives and ends with its struct, not with a call
}

// briefly makes a call that a stop may cut short.
func (c calls) callBriefly(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.opening, briefly)
	defer cancel()
	return c.callUntilLost(ctx, call)
}

// callUntil makes a call that may take until a point in time.
func (c calls) callUntil(end time.Time, call func(context.Context) error) error {
	ctx, cancel := c.until(end)
	defer cancel()
	return c.callUntilLost(ctx, call)
}

// callUntilLost makes a call that may take until ctx ends.
func (c calls) callUntilLost(ctx context.Context, call func(context.Context) error) error {
	result := make(chan error, 1)
	go func() { result <- call(ctx) }()
	err, ok := await(ctx, c, result)
	if !ok {
		return c.late("use the consumer of")
	}
	return err
}

// open opens the source; a consumer that comes too late is closed.
func (c calls) open(ctx context.Context, src transport.Source, opts transport.OpenOptions) (transport.Consumer, error) {
	type opened struct {
		c   transport.Consumer // nil: err says why
		err error              // of Open
	}
	result := make(chan opened, 1)
	go func() {
		con, err := src.Open(ctx, opts)
		result <- opened{con, err}
	}()
	if o, ok := await(ctx, c, result); ok {
		return o.c, o.err
	}
	go func() {
		if o := <-result; o.err == nil {
			_ = o.c.Close(ctx)
		}
	}()
	return nil, c.late("open")
}

// await waits for a result until shortly after ctx has ended.
func await[T any](ctx context.Context, c calls, result <-chan T) (T, bool) {
	select {
	case t := <-result:
		return t, true
	case <-ctx.Done():
	}
	late, stop := after(c.clock, overtime)
	defer stop()
	select {
	case t := <-result:
		return t, true
	case <-late:
		var none T
		return none, false
	}
}

func (c calls) late(op string) error {
	return &longshore.Error{Code: longshore.CodeTimeout, Source: c.name, Op: fmt.Sprintf("%s %q", op, c.source), Err: errors.New("the transport did not return in time")}
}

// after returns a channel that is closed after d, and a function that gives it up.
func after(clock longshore.Clock, d time.Duration) (<-chan struct{}, func()) {
	ch := make(chan struct{})
	t := clock.AfterFunc(max(d, 0), func() { close(ch) })
	return ch, func() { t.Stop() }
}

// until is a context that ends at t by the container's clock.
func (c calls) until(t time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := c.clock.AfterFunc(max(t.Sub(c.clock.Now()), 0), func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}
