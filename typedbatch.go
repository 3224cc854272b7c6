package longshore

import (
	"context"
	"errors"
	"fmt"
)

// TypedBatch is [Typed] for batches. Bodies that do not decode are rejected
// ([CodeUndecodable]) and f gets the others: vs[i] is the body of ds[i]. A [BatchError] of f
// has the indexes of these slices, and any other error of f is that of each of them. f does
// not run if nothing is left.
func TypedBatch[T any](codec Codec, f func(ctx context.Context, vs []T, ds []*Delivery) error, options ...TypedOption) BatchHandlerFunc {
	var o typedOptions
	for _, option := range options {
		option.typed(&o)
	}
	return func(ctx context.Context, ds []*Delivery) error {
		failed := BatchError{}
		vs, good, at := make([]T, 0, len(ds)), make([]*Delivery, 0, len(ds)), make([]int, 0, len(ds))
		for i, d := range ds {
			v, skip, err := decodeOne[T](ctx, codec, o, d)
			switch {
			case err != nil:
				failed[i] = err
			case !skip:
				vs, good, at = append(vs, v), append(good, d), append(at, i)
			}
		}
		if len(good) == 0 {
			return failed
		}
		err := f(ctx, vs, good)
		if err == nil {
			return failed
		}
		if some, ok := errors.AsType[BatchError](err); ok {
			for i, e := range some {
				if i < 0 || i >= len(at) {
					return fmt.Errorf("longshore: index %d of a batch of %d: %w", i, len(at), e)
				}
				failed[at[i]] = e
			}
			return failed
		}
		for _, i := range at {
			failed[i] = err
		}
		return failed
	}
}

// decodeOne decodes the body of a delivery; skip: it has none and is acked without a call.
func decodeOne[T any](ctx context.Context, codec Codec, o typedOptions, d *Delivery) (v T, skip bool, err error) {
	done, skip, err := decodeTyped(o, &d.Message, &v)
	switch {
	case err != nil:
		return v, false, Reject(tombstoned(d, fmt.Sprintf("%T", v)))
	case skip || done:
		return v, skip, nil
	}
	if err = codec.Decode(ctx, &d.Message, &v); err == nil {
		return v, false, nil
	}
	if verdict, _ := VerdictOf(err); verdict == VerdictNone {
		err = Reject(undecodable(d, fmt.Sprintf("%T", v), err))
	}
	return v, false, err
}
