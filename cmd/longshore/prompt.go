package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
)

// canAsk reports whether a person is there to answer a question.
func (a *app) canAsk() bool { return a.streams.InTerminal && !a.print.JSON }

// confirmed asks before something is changed; hint says what to do where there is no terminal.
func (a *app) confirmed(ctx context.Context, yes bool, question, hint string) error {
	if yes {
		return nil
	}
	if !a.canAsk() {
		return &cli.UsageError{Text: "this changes the broker", Hint: hint}
	}
	return a.ask(ctx, question, "answer y, or give --yes")
}

// ask returns nil if the answer is yes.
func (a *app) ask(ctx context.Context, question, hint string) error {
	fmt.Fprintf(a.streams.Err, "%s [y/N] ", question)
	answer, err := cli.Await(ctx, func() (typed string, _ error) {
		_, _ = fmt.Fscanln(a.streams.In, &typed) // nothing typed is a no
		return typed, nil
	})
	if err != nil {
		a.print.Notef("\nnothing was done")
		return err
	}
	if answer != "y" && answer != "Y" && answer != "yes" {
		return &cli.CodeError{Code: cli.ExitPrecondition, Err: &longshore.Error{Code: longshore.CodeState, Op: "nothing was done", Hint: hint}}
	}
	return nil
}

// askToLook is for a look that was refused because it has a cost: it names the cost and the
// number of messages and asks whether to look anyway. It returns refused where the refusal has
// another reason or there is no terminal.
func (a *app) askToLook(ctx context.Context, src transport.Source, name string, refused error) error {
	var e *longshore.Error
	_, costs := src.(transport.BrowseCoster)
	if !costs || !a.canAsk() || !errors.As(refused, &e) || e.Code != longshore.CodeUnsupported || e.Err == nil {
		return refused
	}
	bounded, cancel := a.bounded(ctx)
	n, counted, err := depthOf(bounded, src)
	cancel()
	there := "messages"
	if counted && err == nil {
		there = messages(n)
	}
	return a.ask(ctx, fmt.Sprintf("%s\n%s in %s; look at them anyway?", cli.Printable(e.Err.Error()), there, name), "answer y, or give --force")
}

// depthOf is how many messages the broker counts, without touching them; counted is false if
// it cannot count them.
func depthOf(ctx context.Context, src transport.Source) (n int, counted bool, err error) {
	s, ok := src.(transport.DepthReader)
	if !ok {
		return 0, false, nil
	}
	counts, err := s.Depth(ctx)
	return counts.Ready, err == nil, err
}

// countFor is how many dead letters a prompt speaks of: "12 messages", "at most 5 of 12
// messages", "those of 12 messages that match"; without a count of the broker no number.
func (d *deadLetters) countFor(ctx context.Context, src transport.Source, filter dlq.Filter, most int) string {
	n, counted, err := d.depth(ctx, src)
	limit := ""
	if most > 0 {
		limit = fmt.Sprintf("at most %d of ", most)
	}
	switch {
	case err != nil || !counted:
		if filter.All() {
			return limit + "all dead letters"
		}
		return limit + "the matching dead letters"
	case !filter.All():
		return fmt.Sprintf("%sthe matching ones of %s", limit, messages(n))
	case most > 0 && most < n:
		return fmt.Sprintf("%d of %s", most, messages(n))
	}
	return messages(n)
}

func messages(n int) string { return counted(n, "message") }
