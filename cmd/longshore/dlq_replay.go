package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// dlqReplay is `longshore dlq replay`.
type dlqReplay struct {
	deadLetters

	choose      dlqFilter
	to          string
	rate        string
	batch       int
	hops        int
	dryRun, yes bool
}

// dlqResult is what replay and purge print in JSON.
type dlqResult struct {
	Target  string         `json:"target"`
	DryRun  bool           `json:"dry_run,omitempty"`
	Done    int            `json:"done"`
	Failed  int            `json:"failed"`
	Kept    int            `json:"kept"`
	Unknown int            `json:"unknown_destination"`
	Open    int            `json:"unsettled"`
	Behind  int            `json:"not_reached"`
	To      map[string]int `json:"to,omitempty"`
}

func newDLQReplay(a *app) *cobra.Command {
	f := dlqReplay{deadLetters: deadLetters{a}}
	cmd := &cobra.Command{
		Use:   "replay TARGET",
		Short: "Send dead letters back to their origin",
		Long: "replay sends dead letters back to their origin, the oldest first, without the headers written\n" +
			"about the failure. Each is confirmed there before it leaves TARGET, so that a crash loses none;\n" +
			"at most --batch are sent twice. A Kafka topic keeps its records; which of them were replayed is stored in a group.",
		Example: "  longshore dlq replay 'sqs://orders-dlq?region=eu-west-1' --reason panic --rate 50/s --dry-run",
		Args:    withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.choose.filter(cmd)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), filter, args[0])
		},
	}
	f.choose.flags(cmd, 0, "send no more than this many; 0: all")
	fs := cmd.Flags()
	fs.StringVar(&f.to, "to", "", "send all of them to this destination on the same broker")
	fs.StringVar(&f.rate, "rate", "", "`rate` limit, for example 50/s or 100/m")
	fs.IntVar(&f.hops, "max-hops", hops.Limit, "skip messages that were already moved this many times")
	fs.IntVar(&f.batch, "batch", 100, "settle after this many are sent")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show what would be sent")
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// run confirms each message at its destination before it leaves the queue of dead letters. A crash in
// between leaves a copy with the same identity, never a gap.
func (d *dlqReplay) run(ctx context.Context, filter dlq.Filter, target string) error {
	rate, err := parseRate(d.rate)
	if err != nil {
		return err
	}
	if d.hops < 1 {
		return &cli.UsageError{Text: "--max-hops must be at least 1", Hint: "it is how often a message may have been moved before; the default is 8"}
	}
	if d.batch < 1 {
		return &cli.UsageError{Text: "--batch must be at least 1", Hint: "it is how many may be sent twice after a crash"}
	}
	if strings.Contains(d.to, "://") { // not quoted: it may hold a password
		return &cli.UsageError{Text: "--to is a URL, and it must be a destination on the broker of TARGET", Hint: "write the name of a queue or topic, or exchange/key"}
	}
	src, name, err := d.open(target, d.choose.force)
	if err != nil {
		return err
	}
	if d.dryRun {
		return d.dryRunOf(ctx, src, name, filter)
	}
	if err := d.confirmed(ctx, d.yes, d.question(ctx, src, name, filter), dryHint(src, filter)); err != nil {
		return err
	}
	if !filter.All() && !d.choose.force {
		if err := d.harmless(ctx, target, src); err != nil {
			return err
		}
	}
	bar := newProgress(d.print)
	res, err := dlq.Replay(ctx, dlq.Job{Source: src, Filter: filter, To: d.to, Limit: d.choose.number, Batch: d.batch, MaxHops: d.hops, Rate: rate,
		Hold: d.choose.look, Patience: d.timeout, Progress: bar.ofJob})
	bar.endJob(res)
	if err != nil && res.Looked == 0 && res.Done == 0 { // it has not begun
		return err
	}
	if err != nil {
		d.print.Notef("it ended early: the remaining messages stay where they are; run the same command again to continue")
	}
	return errors.Join(d.show(name, res), err, verdictOf(res, err))
}

// question asks for a replay.
func (d *dlqReplay) question(ctx context.Context, src transport.Source, name string, filter dlq.Filter) string {
	to := "where they came from"
	if d.to != "" {
		to = cli.Printable(d.to)
	}
	return "replay " + d.countFor(ctx, src, filter, d.choose.number) + " from " + name + " to " + to + "?"
}

// verdictOf is the exit code 1 of a replay that left something behind that should
// have gone.
func verdictOf(res dlq.Result, err error) error {
	switch {
	case err != nil:
		return nil
	case res.First != nil:
		return &cli.CodeError{Code: cli.ExitNo, Err: res.First}
	case res.Failed > 0 || res.Unknown > 0 || res.Full || res.Behind > 0:
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return nil
}

// show says that each message was confirmed elsewhere first: a person who deletes the queue
// afterwards must be able to rely on it.
func (d *dlqReplay) show(name string, res dlq.Result) error {
	if d.print.JSON {
		return d.print.Document(dlqResult{Target: name, Done: res.Done, Failed: res.Failed, Kept: res.Kept, Unknown: res.Unknown, Open: res.Open, Behind: res.Behind})
	}
	to := d.to
	if to == "" {
		to = "the place it came from"
	}
	line := fmt.Sprintf("replayed %d, failed %d", res.Done, res.Failed)
	if res.Kept > 0 {
		line += fmt.Sprintf(", left %d that were not chosen", res.Kept)
	}
	if res.Failed > 0 {
		line += "; what failed stays too"
	}
	if res.Done > 0 {
		line += "; each was confirmed in " + to + " before it left " + name
	}
	d.noteLeft(name, res)
	return d.print.Printf("%s\n", line)
}

// noteLeft says why messages stay, for replay and purge alike: a person would otherwise run the
// command again and see the same.
func (d *deadLetters) noteLeft(name string, res dlq.Result) {
	if res.Unknown > 0 {
		d.print.Notef("%s in %s: no origin is recorded, or the origin is this queue; name a destination with --to", messages(res.Unknown)+" left", name)
	}
	if res.Open > 0 {
		d.print.Notef("%s may have been sent without being removed: the next replay sends them again", messages(res.Open))
	}
	if res.Behind > 0 {
		d.print.Notef("%s more were not delivered: a FIFO group is blocked while one of its messages stays, or another consumer holds the queue", messages(res.Behind))
	}
	if res.Full {
		d.print.Notef("too many messages stay, so the ones behind them were not reached; choose by other flags, or raise --look")
	}
}

// dryRunOf counts by destination.
func (d *dlqReplay) dryRunOf(ctx context.Context, src transport.Source, name string, filter dlq.Filter) error {
	res := dlqResult{Target: name, DryRun: true, To: map[string]int{}}
	before := 0
	whole, err := d.look(ctx, src, d.choose.force, d.choose.look, func(l dlq.Letter) bool {
		to := d.to
		if to == "" {
			to = l.Facts.To
		}
		switch {
		case l.Replayed || !filter.Match(l.Delivery, l.Facts):
			res.Kept++
		case to == "":
			res.Unknown++
		default:
			res.Done++
			res.To[to]++
			if l.Facts.Replays > 0 {
				before++
			}
		}
		return d.choose.number == 0 || res.Done < d.choose.number
	})
	if n, counted := d.countInstead(ctx, src, filter, err); counted {
		return d.showCounted(res, n)
	}
	if err != nil {
		return err
	}
	if d.print.JSON {
		return d.print.Document(res)
	}
	var places []string
	for _, to := range slices.Sorted(maps.Keys(res.To)) {
		if len(res.To) == 1 {
			places = append(places, to)
		} else {
			places = append(places, fmt.Sprintf("%s (%d)", to, res.To[to]))
		}
	}
	if !whole && res.Done+res.Kept+res.Unknown >= d.choose.look && (d.choose.number == 0 || res.Done < d.choose.number) {
		d.print.Notef("only the first %d were looked at: raise --look", d.choose.look)
	}
	d.noteLeft(name, dlq.Result{Unknown: res.Unknown})
	if res.Done == 0 {
		return d.print.Printf("would send nothing from %s\n", name)
	}
	replayed := "none was replayed before"
	if before > 0 {
		replayed = messages(before) + " of them failed again after an earlier replay"
	}
	return d.print.Printf("would send %s from %s to %s, oldest first; %s; run again with --yes\n", messages(res.Done), name,
		cli.Printable(strings.Join(places, ", ")), replayed)
}
