package middleware

import (
	"context"
	"errors"
	"maps"

	"github.com/longshore-go/longshore"
)

// without gives a batch handler those deliveries that check lets through, and joins
// its result with the verdicts on the others. What is done already needs neither.
func without(ctx context.Context, ds []*longshore.Delivery, check func(*longshore.Delivery) (done bool, err error), next longshore.BatchHandler) error {
	failed := longshore.BatchError{}
	good, index := make([]*longshore.Delivery, 0, len(ds)), make([]int, 0, len(ds))
	for i, d := range ds {
		switch done, err := check(d); {
		case err != nil:
			failed[i] = err
		case !done:
			good, index = append(good, d), append(index, i)
		}
	}
	if len(good) > 0 {
		err := next.HandleBatch(ctx, good)
		if len(good) == len(ds) {
			return err
		}
		maps.Copy(failed, spread(err, index))
	}
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// spread is the result of a batch by the indexes that index has for it.
func spread(err error, index []int) longshore.BatchError {
	out := longshore.BatchError{}
	var some longshore.BatchError
	if errors.As(err, &some) {
		for i, e := range some {
			if i >= 0 && i < len(index) && e != nil {
				out[index[i]] = e
			}
		}
		return out
	}
	if err != nil {
		for _, i := range index {
			out[i] = err
		}
	}
	return out
}
