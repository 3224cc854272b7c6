package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// peekCommand is `longshore peek`.
type peekCommand struct {
	*app

	n      int
	format string
	force  bool
}

// newPeek refuses where looking changes the queue, such as the delivery count of a quorum
// queue, unless --force says that the person accepts it.
func newPeek(a *app) *cobra.Command {
	f := peekCommand{app: a}
	cmd := &cobra.Command{
		Use:   "peek TARGET",
		Short: "Look at waiting messages without taking them",
		Long: "peek shows waiting messages, the oldest first, and leaves them where they are.\n" +
			"If peeking would change the queue (for example raise a quorum queue's delivery count), peek says so and\n" +
			"asks, or refuses where no one can answer; --force peeks anyway.",
		Example: "  longshore peek 'amqp://guest:guest@localhost/?queue=orders.dlq' -n 20\n" +
			"  longshore peek 'amqp://guest:guest@localhost/?queue=orders' --format '%k %v'",
		Args: withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.n, "number", "n", 10, "show this many messages")
	fs.StringVar(&f.format, "format", "", "print each message by a pattern: "+inspect.Verbs)
	fs.BoolVar(&f.force, "force", false, "look even if that changes the queue")
	return cmd
}

// run prints what was read before an error, and the error after it: ten of twenty messages are better
// than none.
func (p *peekCommand) run(ctx context.Context, target string) error {
	if p.n < 1 {
		return &cli.UsageError{Text: "-n must be at least 1", Hint: "it is the number of messages to show"}
	}
	out, err := newMessagePrinter(p.print, p.format, p.streams.OutTerminal)
	if err != nil {
		return err
	}
	src, found, err := p.look(ctx, target, p.force)
	if err == nil && len(found) == 0 {
		p.print.Notef("no messages wait in %s", nameOf(src))
	}
	return errors.Join(show(out, found), err)
}

// look reads up to p.n messages. On a terminal it asks before a look that has a cost.
func (p *peekCommand) look(ctx context.Context, target string, force bool) (src transport.Source, found []*longshore.Delivery, err error) {
	src, name, err := p.target(target, urls.Options{BrowseCounts: force, NoConsumer: true})
	if err != nil {
		return nil, nil, err
	}
	browser, ok := src.(transport.Browser)
	if !ok {
		return src, nil, &longshore.Error{Code: longshore.CodeUnsupported, Op: "peek into " + name, Err: errors.New("this source cannot be looked into")}
	}
	found, err = p.pages(ctx, browser, name)
	if err == nil || force || len(found) > 0 {
		return src, found, err
	}
	if err = refusedLook(ctx, src, err, force); err != nil {
		err = p.askToLook(ctx, src, name, err)
	}
	if err != nil {
		return src, nil, err
	}
	return p.look(ctx, target, true)
}

// pages reads page after page; what was read before an error counts.
func (p *peekCommand) pages(ctx context.Context, browser transport.Browser, name string) (found []*longshore.Delivery, err error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	for next := ""; len(found) < p.n; {
		var page []*longshore.Delivery
		began := time.Now()
		page, next, err = browser.Browse(ctx, next, p.n-len(found))
		if err != nil {
			return found, err
		}
		p.log.Info("page read", zap.String("source", name), zap.Int("messages", len(page)), zap.Duration("took", time.Since(began)))
		found = append(found, page...)
		if next == "" || len(page) == 0 {
			break
		}
	}
	return found, nil
}

// refusedLook puts the refusal of a look that has a cost into the words of this command. If
// there is nothing to look at, it says so instead.
func refusedLook(ctx context.Context, src transport.Source, err error, force bool) error {
	var refused *longshore.Error
	if force || !errors.As(err, &refused) || refused.Code != longshore.CodeUnsupported {
		return err
	}
	if p, ok := src.(transport.Prober); ok {
		if missing := p.Probe(ctx); missing != nil {
			return missing
		}
	}
	told := *refused
	told.Hint = "--force looks anyway"
	return &told
}

func show(out *messagePrinter, found []*longshore.Delivery) error {
	for _, d := range found {
		if err := out.add(d); err != nil {
			return err
		}
	}
	return out.flush()
}
