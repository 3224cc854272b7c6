package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/container"
)

func main() {
	var w where
	flag.StringVar(&w.amqp, "amqp", "", "RabbitMQ's `URL`; empty: one in this process")
	addrs := flag.String("kafka", "", "Kafka's `host:port,…`; empty: one in this process")
	flag.IntVar(&w.rate, "rate", 500, "`orders` a second")
	flag.DurationVar(&w.work, "for", 2*time.Second, "how `long` the service works between two steps")
	flag.Parse()
	if w.name = fmt.Sprint("orders-", time.Now().Unix()); *addrs != "" {
		w.kafka = strings.Split(*addrs, ",")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Stdout, w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mover is the operator: it does what the step of the move asks for.
type mover struct {
	ctx       context.Context //nolint:containedctx // of the whole run; the workflow reports without one
	out       io.Writer
	producers *producers
	old, new  crew
	oldSide   *outlet
	newSide   *outlet
	done      map[workflow.Phase]bool
	halfway   context.CancelFunc // called when the first producers have been switched; nil: the move goes to its end
	err       error
}

// report receives each look; a step is done once.
func (m *mover) report(p workflow.Progress) {
	if n, of := p.Phase.Step(); p.Done {
		fmt.Fprintf(m.out, "%d/%d %-16s %5d moved in %4.1fs\n", n, of, p.Phase, p.Moved, p.Took.Seconds())
		m.done = map[workflow.Phase]bool{}
		return
	}
	if m.done[p.Phase] {
		return
	}
	m.done = map[workflow.Phase]bool{p.Phase: true}
	switch p.Phase {
	case workflow.Seeded:
		m.err = errors.Join(m.err, m.old.end(m.ctx))
	case workflow.Flows:
		m.err = errors.Join(m.err, m.new.start(m.ctx))
	case workflow.NewRuns:
		if m.producers.side.Store(m.newSide); m.halfway != nil {
			m.halfway()
		}
	case workflow.Returning:
		m.err = errors.Join(m.err, m.new.end(m.ctx))
	case workflow.FlowsBack:
		m.err = errors.Join(m.err, m.old.start(m.ctx))
	case workflow.OldRuns:
		m.producers.side.Store(m.oldSide)
	case workflow.Planned, workflow.OldEnded, workflow.Quiet, workflow.Drained, workflow.Finished, workflow.NewEnded, workflow.QuietBack:
	}
}

// run moves a service there, halfway back, and there again.
func run(ctx context.Context, out io.Writer, w where) (err error) {
	p, err := w.places(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	dir, err := os.MkdirTemp("", "bridge")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	a := newAccount()
	m := &mover{ctx: ctx, out: out, producers: &producers{a: a}, old: crew{"old", p.from, a, nil}, new: crew{"new", p.to, a, nil}, oldSide: p.oldSide, newSide: p.newSide}
	ends := workflow.NewEnds(workflow.Route{Ledger: dir, LettersFrom: p.lettersFrom, LettersTo: p.lettersTo, Seed: p.seed,
		Config: bridge.Config{Name: w.name, From: p.from, To: p.to, Container: container.Config{Logger: zap.NewNop()}}})
	defer func() { err = errors.Join(err, ends.Close()) }()
	move := workflow.New(workflow.Config{Route: w.name, Ledger: dir, Ends: ends, Quiet: w.work, Poll: 100 * time.Millisecond, Report: m.report})

	m.producers.side.Store(m.oldSide)
	if err := m.old.start(ctx); err != nil {
		return err
	}
	m.producers.start(ctx, w.rate)
	defer func() { err = errors.Join(err, m.old.end(ctx), m.new.end(ctx)) }()
	defer m.producers.end()
	wait(ctx, w.work)
	halfway, turn := context.WithCancel(ctx)
	m.halfway = turn
	if _, err := move.Cutover(halfway); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the cut-over was to be interrupted: %w", err)
	}
	if m.halfway = nil; m.err == nil {
		_, m.err = move.Rollback(ctx)
	}
	wait(ctx, w.work)
	if m.err == nil {
		_, m.err = move.Cutover(ctx)
	}
	if m.err != nil {
		return m.err
	}
	wait(ctx, w.work)
	m.producers.end()
	return errors.Join(prove(ctx, out, a, p, dir), finish(ctx, move))
}

func finish(ctx context.Context, move *workflow.Move) error {
	_, err := move.Finish(ctx)
	return err
}

// prove compares the service's account, the ledger and what is left.
func prove(ctx context.Context, out io.Writer, a *account, p *places, dir string) error {
	for end := time.Now().Add(30 * time.Second); a.missing() > 0 && time.Now().Before(end); {
		wait(ctx, 50*time.Millisecond)
	}
	v, err := bridge.Verify(ctx, dir, p.to)
	if err != nil {
		return err
	}
	text, gap := a.sum()
	fmt.Fprintf(out, "%s\n%v\n", text, v)
	switch {
	case a.missing() > 0 || !v.OK():
		return errors.New("orders are missing, or the ledger has differences")
	case gap > 5*time.Second:
		return fmt.Errorf("nothing was handled for %v", gap)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
