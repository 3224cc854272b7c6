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

// callAll calls one method of all components at once, and says until when to wait: for
// patience after the end of ctx's time, obeyCancel after a cancel.
func callAll(ctx context.Context, parts []Component, patience time.Duration, method func(Component, context.Context) error) (results []chan error, late *lateness) {
	results = make([]chan error, len(parts))
	for i, c := range parts {
		results[i] = make(chan error, 1)
		go func() { results[i] <- call(ctx, c, method) }()
	}
	late = &lateness{over: make(chan struct{})}
	late.unhook = context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			patience = obeyCancel
		}
		time.AfterFunc(patience, func() { close(late.over) })
	})
	return results, late
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

// lateness ends the waiting for those that do not obey their context.
type lateness struct {
	over   chan struct{}
	unhook func() bool
}

func (l *lateness) forget() { l.unhook() }

func (l *lateness) await(result <-chan error) error {
	select {
	case err := <-result:
		return err
	case <-l.over:
	}
	select {
	case err := <-result:
		return err
	default:
		return errDeaf
	}
}
