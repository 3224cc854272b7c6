package container

import (
	"context"
	"errors"
	"maps"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// prepared calls the source's Prepare before the chain; its error is the result.
func prepared(p transport.Preparer, next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if err := p.Prepare(ctx, d); err != nil {
			return err
		}
		return next.Handle(ctx, d)
	})
}

// preparedBatch leaves out of a batch what cannot be prepared. The others are
// handled as if it had not been there.
func preparedBatch(p transport.Preparer, next longshore.BatchHandler) longshore.BatchHandlerFunc {
	return func(ctx context.Context, ds []*longshore.Delivery) error {
		var bad longshore.BatchError
		for i, d := range ds {
			if err := p.Prepare(ctx, d); err != nil {
				if bad == nil {
					bad = longshore.BatchError{}
				}
				bad[i] = err
			}
		}
		if bad == nil {
			return next.HandleBatch(ctx, ds)
		}
		good, at := make([]*longshore.Delivery, 0, len(ds)-len(bad)), make([]int, 0, len(ds)-len(bad))
		for i, d := range ds {
			if bad[i] == nil {
				good, at = append(good, d), append(at, i)
			}
		}
		if len(good) == 0 {
			return bad
		}
		return merged(bad, next.HandleBatch(ctx, good), at)
	}
}

// merged adds what became of a part of the batch; at is where its deliveries are in
// the whole.
func merged(bad longshore.BatchError, err error, at []int) error {
	out := maps.Clone(bad)
	var each longshore.BatchError
	switch {
	case err == nil:
	case errors.As(err, &each):
		for i, e := range each {
			if i >= 0 && i < len(at) {
				out[at[i]] = e
			}
		}
	default: // of the whole: each comes alone next time, the bad ones too
		return err
	}
	return out
}
