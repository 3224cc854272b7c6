package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// Timeout ends the context that a call of the handler gets after limit, for a batch
// that of the whole call. Its cause is an error with [longshore.CodeTimeout], and so
// is what the call returns if it fails from then on: an ordinary error, which is
// retried. A handler that succeeds late has succeeded.
//
// Nothing can end a handler that ignores its context; the container shows such a one
// as stuck. Limit must be above zero, else the container refuses to start.
func Timeout(limit time.Duration) longshore.Middleware { return timeout{limit} }

type timeout struct{ limit time.Duration }

func (timeout) Name() string { return nameTimeout }

func (t timeout) Check(_ context.Context, f longshore.Facts) error {
	if t.limit > 0 {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeConfig, Op: "middleware timeout", Source: f.Container,
		Err: fmt.Errorf("a limit of %s", t.limit), Hint: "give a duration above zero, or leave the middleware out"}
}

func (t timeout) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		return t.call(ctx, func(ctx context.Context) error { return next.Handle(ctx, d) })
	})
}

func (t timeout) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		return t.call(ctx, func(ctx context.Context) error { return next.HandleBatch(ctx, ds) })
	})
}

func (t timeout) call(ctx context.Context, f func(context.Context) error) error {
	var cause error = &longshore.Error{Code: longshore.CodeTimeout, Op: "handle", Err: fmt.Errorf("the handler took longer than %s", t.limit)}
	limited, cancel := context.WithTimeoutCause(ctx, t.limit, cause)
	defer cancel()
	err := f(limited)
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(limited), cause) {
		return err
	}
	if v, _ := longshore.VerdictOf(err); v != longshore.VerdictNone || errors.Is(err, longshore.CodeTimeout) {
		return err // it knows what it wants
	}
	var batch longshore.BatchError
	if errors.As(err, &batch) {
		return err // and which of them
	}
	return &longshore.Error{Code: longshore.CodeTimeout, Op: "handle", Err: fmt.Errorf("the handler took longer than %s: %w", t.limit, err)}
}
