package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
)

// dlqPurge is `longshore dlq purge`.
type dlqPurge struct {
	deadLetters

	choose      dlqFilter
	dryRun, yes bool
}

func newDLQPurge(a *app) *cobra.Command {
	f := dlqPurge{deadLetters: deadLetters{a}}
	cmd := &cobra.Command{
		Use:   "purge TARGET",
		Short: "Remove dead letters for good",
		Long: "purge removes dead letters for good. Of a Kafka topic only the oldest part can be\n" +
			"removed: of each partition everything up to the first record that is neither chosen nor replayed.",
		Example: "  longshore dlq purge 'amqp://guest:guest@localhost/?queue=orders.dlq' --older 720h --force",
		Args:    withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.choose.filter(cmd)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), filter, args[0])
		},
	}
	f.choose.flags(cmd, 0, "remove no more than this many; 0: all")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be removed")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// run asks before it deletes, and the question states the number, so that a filter that matches more
// than was meant is noticed in time.
func (d *dlqPurge) run(ctx context.Context, filter dlq.Filter, target string) error {
	src, name, err := d.open(target, d.choose.force)
	if err != nil {
		return err
	}
	job := dlq.Job{Source: src, Filter: filter, Limit: d.choose.number, Hold: d.choose.look, Patience: d.timeout}
	if d.dryRun {
		return d.dryRunOf(ctx, src, name, job)
	}
	if err := d.confirmed(ctx, d.yes, "permanently remove "+d.countFor(ctx, src, filter, d.choose.number)+" from "+name+"?", dryHint(src, job.Filter)); err != nil {
		return err
	}
	if !filter.All() && !d.choose.force {
		if err := d.harmless(ctx, target, src); err != nil {
			return err
		}
	}
	bar := newProgress(d.print)
	job.Progress = bar.ofJob
	res, err := dlq.Purge(ctx, job)
	bar.endJob(res)
	if err != nil && res.Looked == 0 && res.Done == 0 { // it has not begun
		return err
	}
	if err != nil {
		d.print.Notef("it ended early: the remaining messages stay where they are; run the same command again to continue")
	}
	return errors.Join(d.show(name, res, false), err, verdictOf(dlq.Result{Full: res.Full, Behind: res.Behind}, err))
}

// dryRunOf counts what purge would remove. Where all messages are meant, the broker's count is enough
// and nothing is read. On Kafka the order decides, because only the oldest part can be removed.
func (d *dlqPurge) dryRunOf(ctx context.Context, src transport.Source, name string, job dlq.Job) error {
	var res dlq.Result
	if _, ok := src.(dlq.Log); ok {
		bounded, cancel := d.bounded(ctx)
		defer cancel()
		p, err := dlq.PrefixOf(bounded, job)
		if err != nil {
			return err
		}
		res.Done, res.Kept = p.Chosen, p.Behind+p.Staying
		if p.Behind > 0 {
			d.print.Notef("%s chosen too, but behind one that stays: Kafka removes only the oldest part", messages(p.Behind))
		}
		return d.show(name, res, true)
	}
	if d.choose.number == 0 && job.Filter.All() && !d.choose.force {
		n, counted, err := d.depth(ctx, src)
		if err != nil {
			return err
		}
		if counted {
			res.Done = n
			return d.show(name, res, true)
		}
	}
	_, err := d.look(ctx, src, d.choose.force, d.choose.look, func(l dlq.Letter) bool {
		if job.Filter.Match(l.Delivery, l.Facts) {
			res.Done++
		} else {
			res.Kept++
		}
		return d.choose.number == 0 || res.Done < d.choose.number
	})
	if err != nil {
		return err
	}
	return d.show(name, res, true)
}

// depth is depthOf within --timeout.
func (d *deadLetters) depth(ctx context.Context, src transport.Source) (n int, counted bool, err error) {
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	return depthOf(ctx, src)
}

// show reports a removal that was not confirmed as not known instead of counting it on either
// side.
func (d *dlqPurge) show(name string, res dlq.Result, dry bool) error {
	if d.print.JSON {
		return d.print.Document(dlqResult{Target: name, DryRun: dry, Done: res.Done, Kept: res.Kept, Open: res.Open, Behind: res.Behind})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	line := fmt.Sprintf("%s %s from %s", verb, messages(res.Done), name)
	if res.Kept > 0 {
		line += fmt.Sprintf(", left %d", res.Kept)
	}
	if !dry {
		d.noteLeft(name, dlq.Result{Full: res.Full, Behind: res.Behind})
		if res.Open > 0 {
			d.print.Notef("whether %s more are removed is not known", messages(res.Open))
		}
	}
	return d.print.Printf("%s\n", line)
}
