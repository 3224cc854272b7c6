package sqs

import (
	"context"

	"github.com/aws/smithy-go/middleware"

	"github.com/longshore-go/longshore"
)

// again makes a call a second time whose credentials were refused: with those that the
// provider gives now, and by the clock that the refusal told of. Whoever calls, to
// receive or to delete, to extend or to send, would otherwise go on with what was
// refused until something else asks for new ones.
type again struct{ b *Broker }

// ID implements the SDK's interface.
func (again) ID() string { return "LongshoreCredentials" }

// HandleInitialize implements the SDK's interface.
func (a again) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, meta middleware.Metadata, err error,
) {
	used := a.b.renewals()
	out, meta, err = next.HandleInitialize(ctx, in)
	if codeOr(err) != longshore.CodeAuth || ctx.Err() != nil {
		return out, meta, err
	}
	a.b.renew(used)
	return next.HandleInitialize(ctx, in)
}

func (a again) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(a, middleware.Before)
}

// renewals counts how often credentials were thrown away.
func (b *Broker) renewals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewed
}

// renew makes the next call ask for the credentials again, unless that was done since
// used: many calls are refused at once, and to ask may cost a call of its own.
func (b *Broker) renew(used int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.renewed == used && b.sdk != nil && b.sdk.creds != nil {
		b.sdk.creds.Invalidate()
		b.renewed++
	}
}
