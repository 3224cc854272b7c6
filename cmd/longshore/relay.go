package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// relayCommand is `longshore relay`.
type relayCommand struct {
	*app

	db   database
	cfg  mutex.OutboxConfig
	once bool
}

// relayResult is the answer at the end. Pending and Parked are known with --once only.
type relayResult struct {
	Published int64 `json:"published"`
	Refused   int64 `json:"refused"`
	Pending   int64 `json:"pending"`
	Parked    int64 `json:"parked"`
}

// newRelay runs an outbox's relay as a process of its own, for services that should not publish
// themselves.
func newRelay(a *app) *cobra.Command {
	f := relayCommand{app: a}
	cmd := &cobra.Command{
		Use:   "relay TARGET",
		Short: "Publish the messages of an outbox",
		Long: "relay publishes the messages of an outbox on the broker of TARGET, each to the destination stored\n" +
			"with it, until Ctrl-C. Any number of relays may share an outbox.\n" +
			"Only the broker in TARGET matters; its queue or topic is ignored.",
		Example: "  LONGSHORE_DB=postgres://shop@db/shop longshore relay 'amqp://guest:guest@localhost/?queue=orders'",
		Args:    withTarget(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	}
	f.db.flags(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.once, "once", false, "end when only parked messages are left")
	fs.IntVar(&f.cfg.Batch, "batch", 0, "rows fetched at once (default 100)")
	fs.IntVar(&f.cfg.Relays, "parts", 0, "parts of the outbox relayed in parallel, at most 8, one connection each (default 4)")
	fs.IntVar(&f.cfg.MaxAttempts, "max-attempts", 0, "refusals before a message is parked (default 10)")
	return cmd
}

// run closes the publisher after the relay has stopped, whatever ended it: confirms that are still due
// remove rows from the outbox.
func (r *relayCommand) run(ctx context.Context, target string) (err error) {
	src, name, err := r.target(target, urls.Options{NoConsumer: true})
	if err != nil {
		return err
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "publish to " + name, Err: errors.New("this source has no publisher")}
	}
	db, dialect, err := r.db.open(r.streams.Env)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := ping(ctx, r.app, db, &r.db); err != nil {
		return err
	}
	pub, _, err := outlet.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pub.Close(context.WithoutCancel(ctx))) }()
	r.cfg.Tables, r.cfg.Logger = r.db.tables, r.logger()
	outbox, err := mutex.NewOutbox(mutex.SQL(db, dialect), pub, r.cfg)
	if err != nil {
		return &cli.CodeError{Code: cli.ExitUsage, Err: err}
	}
	return r.serve(ctx, outbox, r.once)
}

// serve runs the relay until it is interrupted, or with once until nothing can be published.
func (r *relayCommand) serve(ctx context.Context, outbox *mutex.Outbox, once bool) error {
	// A database that cannot be used is said at once, not again and again in a log.
	first, cancel := r.bounded(ctx)
	before, err := outbox.Backlog(first)
	cancel()
	if err != nil {
		return &cli.CodeError{Code: cli.ExitUnreachable, Err: &longshore.Error{Code: longshore.CodeUnreachable, Op: "read the outbox", Err: err,
			Hint: "check --db and the names of the tables; longshore mutex ddl prints them"}}
	}
	r.print.Notef("%d messages in the outbox, %d of them parked; Ctrl-C ends it", before.Pending, before.Parked)
	relay := outbox.Relay()
	if err := relay.Start(ctx); err != nil {
		return err
	}
	var end relayResult
	if once {
		end, err = untilEmpty(ctx, outbox)
	} else {
		<-ctx.Done()
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), relay.StopBudget())
	defer cancel()
	err = errors.Join(err, relay.Stop(stop))
	stats := relay.Stats()
	end.Published, end.Refused = stats.Published, stats.Refused
	if r.print.JSON {
		err = errors.Join(err, r.print.Document(end))
	} else {
		err = errors.Join(err, r.print.Printf("published %d, refused %d\n", end.Published, end.Refused))
	}
	if err == nil && end.Parked > 0 {
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return err
}

// untilEmpty waits until only parked rows, and those that they hold up, are left.
func untilEmpty(ctx context.Context, outbox *mutex.Outbox) (end relayResult, err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for last := int64(-1); ; {
		b, err := outbox.Backlog(ctx)
		if err != nil {
			return end, err
		}
		end.Pending, end.Parked = b.Pending, b.Parked
		done := outbox.Relay().Stats().Published
		if b.Pending == b.Parked || (b.Parked > 0 && b.Age > 10*time.Second && done == last) {
			return end, nil
		}
		last = done
		select {
		case <-tick.C:
		case <-ctx.Done():
			return end, context.Cause(ctx)
		}
	}
}

func (r *relayCommand) logger() *zap.Logger {
	if r.options.Quiet {
		return zap.NewNop()
	}
	if r.options.Verbose {
		return r.log
	}
	return nil // warnings on stderr
}
