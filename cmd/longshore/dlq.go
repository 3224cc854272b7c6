package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

func newDLQ(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, replay and remove dead letters",
		Long: "TARGET is the queue or topic that holds the dead letters, or the container they belong to. A container, RabbitMQ's\n" +
			"dead-lettering, the redrive of SQS or Spring may have written them. A Kafka topic keeps replayed\n" +
			"records; the group longshore-dlq.TOPIC remembers which were replayed.",
		Args: verbOf,
		RunE: func(*cobra.Command, []string) error {
			return &cli.UsageError{Text: "dlq needs a command", Hint: "longshore dlq list, show, replay or purge"}
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	for _, verb := range []*cobra.Command{newDLQList(a), newDLQShow(a), newDLQReplay(a), newDLQPurge(a)} {
		cmd.AddCommand(a.takesTarget(verb))
	}
	return cmd
}

// verbOf refuses an unknown subcommand, and names the nearest or all known ones.
func verbOf(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "did you mean " + strings.Join(cmd.SuggestionsFor(args[0]), " or ") + "?"
	if len(cmd.SuggestionsFor(args[0])) == 0 {
		var verbs []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				verbs = append(verbs, sub.Name())
			}
		}
		hint = "the verbs are " + strings.Join(verbs, ", ")
	}
	return &cli.UsageError{Text: fmt.Sprintf("unknown command %.64q for %q", args[0], cmd.CommandPath()), Hint: hint}
}

// dlqFilter is the flags that choose dead letters.
type dlqFilter struct {
	ids                       []string
	reason, source, text, key string
	since, older              time.Duration
	force                     bool
	look, number              int
}

// flags are the same for every verb, so that what list shows is what replay and purge take.
func (f *dlqFilter) flags(cmd *cobra.Command, number int, what string) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.ids, "id", nil, "only the message with this id, as shown by list or the consumer's log; repeat for more")
	fs.StringVar(&f.reason, "reason", "", "only those that failed for this reason: an error code, the broker's reason or an exception class")
	fs.StringVar(&f.source, "from", "", "only those from this queue or topic")
	fs.StringVar(&f.key, "key", "", "only those with this ordering key")
	fs.StringVar(&f.text, "error", "", "only those whose error contains this text")
	fs.DurationVar(&f.since, "since", 0, "only those dead-lettered within this time")
	fs.DurationVar(&f.older, "older", 0, "only those dead-lettered longer ago than this")
	fs.BoolVar(&f.force, "force", false, "look even if that changes the queue")
	fs.IntVarP(&f.number, "number", "n", number, what)
	fs.IntVar(&f.look, "look", 10_000, "look at no more than this many messages")
}

// filter checks the flags.
func (f *dlqFilter) filter(cmd *cobra.Command) (dlq.Filter, error) {
	switch {
	case f.since < 0 || f.older < 0:
		return dlq.Filter{}, &cli.UsageError{Text: "--since and --older must be more than 0", Hint: "write for example --since 24h"}
	case f.look < 1:
		return dlq.Filter{}, &cli.UsageError{Text: "--look must be at least 1", Hint: "it is the number of messages to look at"}
	case cmd.Flags().Changed("number") && f.number < 1:
		return dlq.Filter{}, &cli.UsageError{Text: "-n must be at least 1", Hint: "it is the number of dead letters"}
	}
	out := dlq.Filter{IDs: f.ids, Reason: f.reason, Source: f.source, Error: f.text}
	if cmd.Flags().Changed("key") {
		out.Key = &f.key
	}
	now := time.Now()
	if f.since > 0 {
		out.Since = now.Add(-f.since)
	}
	if f.older > 0 {
		out.Before = now.Add(-f.older)
	}
	return out, nil
}

// deadLetters is what the verbs of `longshore dlq` have in common: they open a place of dead
// letters, look into it and count it.
type deadLetters struct{ *app }

// open opens the place of dead letters, to look or to consume.
func (d *deadLetters) open(raw string, force bool) (src transport.Source, name string, err error) {
	return d.target(raw, urls.Options{BrowseCounts: force, NoConsumer: true, DeadLetters: true})
}

// look is dlq.Look with this command's words for a look that has a cost.
func (d *deadLetters) look(ctx context.Context, src transport.Source, force bool, limit int, each func(dlq.Letter) bool) (whole bool, err error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	seen := 0
	whole, err = dlq.Look(ctx, src, limit, func(l dlq.Letter) bool { seen++; return each(l) })
	if err != nil {
		err = refusedLook(ctx, src, err, force)
	}
	if cost := costOf(src); cost != "" && seen > 0 {
		d.print.Notef("note: %s", cost)
	}
	return err == nil && whole && !d.unseen(ctx, src, seen), err
}

// lookAsking is look where a person is asked before a look that has a cost.
func (d *deadLetters) lookAsking(ctx context.Context, raw string, force bool, limit int, each func(dlq.Letter) bool) (src transport.Source, whole bool, err error) {
	src, name, err := d.open(raw, force)
	if err != nil {
		return nil, false, err
	}
	whole, err = d.look(ctx, src, force, limit, each)
	if err == nil || force {
		return src, whole, err
	}
	if err = d.askToLook(ctx, src, name, err); err != nil {
		return src, false, err
	}
	return d.lookAsking(ctx, raw, true, limit, each)
}

// unseen reports whether the broker counts more messages than a look has brought, and notes
// why.
func (d *deadLetters) unseen(ctx context.Context, src transport.Source, seen int) bool {
	counter, ok := src.(transport.DepthReader)
	if d, described := src.(transport.Describer); !ok || !described || !d.Describe().Approximate {
		return false
	}
	counts, err := counter.Depth(ctx)
	if err != nil {
		return false // only a note hangs on it
	}
	switch {
	case src.Capabilities().Keyed && counts.Ready > seen:
		d.print.Notef("note: SQS counts %s, but of each FIFO group only the messages of one receive can be seen", messages(counts.Ready))
	case seen == 0 && counts.Hidden > 0:
		d.print.Notef("note: SQS counts %s that another consumer has received and not settled; they return when their visibility timeout ends", messages(counts.Hidden))
	default:
		return false
	}
	return true
}

// costOf says what a look has done to the messages.
func costOf(src transport.Source) string {
	if c, ok := src.(transport.BrowseCoster); ok {
		return c.BrowseCost()
	}
	return ""
}

// harmless refuses what would take messages and give them back where that has a
// cost. It looks at one message.
func (d *deadLetters) harmless(ctx context.Context, raw string, src transport.Source) error {
	careful, _, err := d.open(raw, false)
	if err != nil {
		return err
	}
	b, ok := careful.(transport.Browser)
	if !ok {
		return nil
	}
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	_, _, err = b.Browse(ctx, "", 1)
	var refused *longshore.Error
	if !errors.As(err, &refused) || refused.Code != longshore.CodeUnsupported {
		return err
	}
	told := *refused
	told.Op = "choose from " + nameOf(src)
	told.Hint = "messages that are not chosen are received and returned; --force does it anyway"
	return &told
}
