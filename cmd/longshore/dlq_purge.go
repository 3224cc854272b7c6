package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
)

type dlqPurgeFlags struct {
	dlqFilter

	dryRun, yes bool
}

func (a *app) dlqPurge() *cobra.Command {
	var f dlqPurgeFlags
	cmd := &cobra.Command{
		Use:   "purge TARGET",
		Short: "Remove dead letters for good",
		Long: "purge removes dead letters; there is no way back. Of a Kafka topic only the oldest part can be\n" +
			"removed: of each partition everything up to the first record that is neither chosen nor replayed.",
		Example: "  longshore dlq purge 'amqp://guest:guest@localhost/?queue=orders.dlq' --older 720h --force",
		Args:    withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd)
			if err != nil {
				return err
			}
			return a.runDLQPurge(cmd.Context(), f, filter, args[0])
		},
	}
	f.flags(cmd, 0, "`how many` to remove at most; 0 = all")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be removed")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) runDLQPurge(ctx context.Context, f dlqPurgeFlags, filter dlq.Filter, target string) error {
	src, name, err := a.letters(target, f.force)
	if err != nil {
		return err
	}
	job := dlq.Job{Source: src, Filter: filter, Limit: f.number, Hold: f.look, Patience: a.timeout}
	if f.dryRun {
		return a.dryPurge(ctx, src, name, f, job)
	}
	if err := a.confirmed(ctx, f.yes, "remove dead letters from "+name+" for good?", dryHint(src, job.Filter)); err != nil {
		return err
	}
	if !filter.All() && !f.force {
		if err := a.harmless(ctx, target, src); err != nil {
			return err
		}
	}
	bar := newProgress(a.print)
	job.Progress = bar.show
	res, err := dlq.Purge(ctx, job)
	bar.end(res)
	if err != nil && res.Looked == 0 && res.Done == 0 { // it has not begun
		return err
	}
	if err != nil {
		a.print.Notef("it ended before all was done: what is left stays where it is, and the same command goes on with it")
	}
	return errors.Join(a.showPurged(name, res, false), err, verdictOf(dlq.Result{Full: res.Full, Behind: res.Behind}, err))
}

func (a *app) dryPurge(ctx context.Context, src transport.Source, name string, f dlqPurgeFlags, job dlq.Job) error {
	var res dlq.Result
	if _, ok := src.(dlq.Log); ok {
		bounded, cancel := a.bounded(ctx)
		defer cancel()
		p, err := dlq.PrefixOf(bounded, job)
		if err != nil {
			return err
		}
		res.Done, res.Kept = p.Chosen, p.Behind+p.Staying
		if p.Behind > 0 {
			a.print.Notef("%s chosen too, but behind one that stays: Kafka removes only the oldest part", messages(p.Behind))
		}
		return a.showPurged(name, res, true)
	}
	if f.number == 0 && job.Filter.All() && !f.force {
		n, counted, err := a.depth(ctx, src)
		if err != nil {
			return err
		}
		if counted {
			res.Done = n
			return a.showPurged(name, res, true)
		}
	}
	_, err := a.lookAt(ctx, src, f.force, f.look, func(l dlq.Letter) bool {
		if job.Filter.Match(l.Delivery, l.Facts) {
			res.Done++
		} else {
			res.Kept++
		}
		return f.number == 0 || res.Done < f.number
	})
	if err != nil {
		return err
	}
	return a.showPurged(name, res, true)
}

// depth is how many messages the broker counts, without touching them; counted is false if
// it cannot count them.
func (a *app) depth(ctx context.Context, src transport.Source) (n int, counted bool, err error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	s, ok := src.(transport.DepthReader)
	if !ok {
		return 0, false, nil
	}
	counts, err := s.Depth(ctx)
	return counts.Ready, err == nil, err
}

func (a *app) showPurged(name string, res dlq.Result, dry bool) error {
	if a.print.JSON {
		return a.print.Document(dlqResult{Target: name, DryRun: dry, Done: res.Done, Kept: res.Kept, Open: res.Open, Behind: res.Behind})
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
		a.noteLeft(name, dlq.Result{Full: res.Full, Behind: res.Behind})
		if res.Open > 0 {
			a.print.Notef("whether %s more are removed is not known", messages(res.Open))
		}
	}
	return a.print.Printf("%s\n", line)
}
