package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// notStarted is the error of a start whose time is over. The broker's last error explains
// most; without one, there was no response from its address, whatever the transport calls
// that. The caller finds the end of its own context by errors.Is.
func notStarted(ctx context.Context, set *settings, last error) error {
	over := &startOver{last: last, ctx: ctx.Err(), cause: context.Cause(ctx)}
	out := &longshore.Error{Code: longshore.CodeUnreachable, Source: set.name, Op: fmt.Sprintf("start container %q", set.name), Err: over}
	var known *longshore.Error
	switch {
	case errors.As(last, &known) && known.Code != longshore.CodeTimeout:
		if known.Err != nil {
			over.text = known.Err.Error()
		}
		said := *known
		said.Err = over
		return &said
	case !errors.Is(over.ctx, context.DeadlineExceeded) && last == nil:
		out.Code, over.text = longshore.CodeState, over.cause.Error() // called off, and nothing is known of the broker
	default:
		over.text = fmt.Sprintf("the broker of %q has not answered in the time for the start", set.about.Name)
		if last != nil {
			over.text += ": " + bare(last)
		}
		out.Hint = "see that the broker runs, and check its address and what lies between; with a longer time for the start it is tried again"
	}
	return out
}

// bare is an error's text for the middle of another.
func bare(err error) string {
	var known *longshore.Error
	if errors.As(err, &known) {
		return known.Text()
	}
	return err.Error()
}

// startOver says why a start gave up and keeps both for errors.Is: what the last
// attempt met, and how the caller's context ended.
type startOver struct {
	text             string // what the start came to
	last, ctx, cause error  // the last attempt's error, the context's, and the one that is wrapped
}

// Error returns the reason without the context's end.
func (e *startOver) Error() string { return e.text }

// Unwrap returns the last attempt's error and the context's.
func (e *startOver) Unwrap() []error {
	errs := []error{e.ctx, e.cause}
	if e.last != nil {
		errs = append(errs, e.last)
	}
	return errs
}

// errStopped is the error of a start that a stop has overtaken.
func errStopped(name string) error {
	return &longshore.Error{Code: longshore.CodeState, Source: name, Op: fmt.Sprintf("start container %q", name), Err: errors.New("it was stopped before it had subscribed")}
}
