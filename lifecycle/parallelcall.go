package lifecycle

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/longshore-go/longshore"
)

// errDeaf is a component that goes on after the end of its context.
var errDeaf = errors.New("it does not return, and is left as it is")

// outcome is how one component's call ended.
type outcome struct {
	part int   // its place among the components
	err  error // what the call returned; nil: success
}

// callAll calls one method of all components at once and returns their errors by place.
// A component that has not returned patience(ctx.Err()) after the end of ctx is left
// behind with errDeaf, so that it cannot keep the others from being put in order. seen,
// if not nil, gets each error as it comes.
func callAll(ctx context.Context, parts []Component, patience func(error) time.Duration, method func(Component, context.Context) error, seen func(part int, err error)) []error {
	results := make(chan outcome, len(parts))
	for i, c := range parts {
		go func() { results <- outcome{i, call(ctx, c, method)} }()
	}
	errs, waiting := make([]error, len(parts)), make(map[int]bool, len(parts))
	for i := range parts {
		waiting[i] = true
	}
	take := func(o outcome) {
		errs[o.part] = o.err
		delete(waiting, o.part)
		if o.err != nil && seen != nil {
			seen(o.part, o.err)
		}
	}
	ended, over := ctx.Done(), (<-chan time.Time)(nil)
	for len(waiting) > 0 {
		select {
		case o := <-results:
			take(o)
			continue
		case <-ended:
			ended, over = nil, time.After(patience(ctx.Err()))
			continue
		case <-over:
		}
		for len(results) > 0 { // they came with the end of the patience
			take(<-results)
		}
		for i := range waiting {
			errs[i] = errDeaf
		}
		break
	}
	return errs
}

// call makes a panic an error: what the other components hold is to be put in order all
// the same.
func call(ctx context.Context, c Component, method func(Component, context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &longshore.Error{Code: longshore.CodePanic, Err: &longshore.Panic{Value: p, Stack: debug.Stack()}}
		}
	}()
	return method(c, ctx)
}
