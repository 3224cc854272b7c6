package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
)

// The three middlewares of the hot path cases: recover, a metrics pair of atomics,
// a guarded log line. Around the plain loop the metrics read the clock; in a
// container they take the pair of readings that it offers.

type metrics struct {
	calls, nanos atomic.Int64
}

// offered is metrics as a container's user writes them.
type offered struct{ metrics }

func (*offered) Wrap(next longshore.Handler) longshore.Handler { return next }

func (m *offered) Outcome(_ *longshore.Delivery, o longshore.Outcome) {
	m.calls.Add(1)
	m.nanos.Add(int64(o.Took))
}

func chain(m longshore.Middleware, log *zap.Logger) []longshore.Middleware {
	return []longshore.Middleware{
		longshore.MiddlewareFunc(recoverPanics),
		m,
		longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler { return logged(next, log) }),
	}
}

func recoverPanics(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return next.Handle(ctx, d)
	})
}

func (m *metrics) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		begin := time.Now()
		err := next.Handle(ctx, d)
		m.calls.Add(1)
		m.nanos.Add(int64(time.Since(begin)))
		return err
	})
}

func logged(next longshore.Handler, log *zap.Logger) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		err := next.Handle(ctx, d)
		if err != nil {
			log.Debug("failed", zap.Error(err))
		}
		return err
	})
}
