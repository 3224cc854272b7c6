package middleware

import (
	"context"
	"runtime/debug"

	"github.com/longshore-go/longshore"
)

// Recover makes an error with [longshore.CodePanic], and [longshore.Panic] in it, of a panic. A container does
// that itself; Recover is for chains outside of one, and for middlewares that must
// see a panic of what they wrap as an error.
func Recover() longshore.Middleware { return recoverer{} }

type recoverer struct{}

func (recoverer) Name() string { return nameRecover }

func (recoverer) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) (err error) {
		defer caught(&err)
		return next.Handle(ctx, d)
	})
}

func (recoverer) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) (err error) {
		defer caught(&err)
		return next.HandleBatch(ctx, ds)
	})
}

func caught(err *error) {
	if p := recover(); p != nil {
		*err = &longshore.Error{Code: longshore.CodePanic, Op: "handle", Err: &longshore.Panic{Value: p, Stack: debug.Stack()}}
	}
}
