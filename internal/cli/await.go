package cli

import "context"

// Await is what read returns, or the cause of ctx if that ends first: a read of a
// terminal or a pipe cannot be ended, and it must not hold up a signal. What is still
// reading then ends with the process.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := read()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
