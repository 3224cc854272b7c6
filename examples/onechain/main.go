package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the inbox of this example

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/mutex"
)

func main() {
	var w where
	flag.StringVar(&w.amqp, "amqp", "", "RabbitMQ's `URL`; empty: one in this process")
	flag.StringVar(&w.kafka, "kafka", "", "Kafka's `host:port,…`; empty: one in this process")
	flag.StringVar(&w.sqs, "sqs", "", "SQS's `endpoint`; empty: one in this process")
	flag.Parse()
	w.run = fmt.Sprint(time.Now().UnixNano())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Stdout, w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, w where) (err error) {
	db, remove, err := database(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	cfg, err := chain(db)
	if err != nil {
		return err
	}
	ls, err := legs(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(ls)) }()
	ledgers, errs := make([]*ledger, len(ls)), make([]error, len(ls))
	var wg sync.WaitGroup
	for i, l := range ls {
		ledgers[i] = newLedger(l.name)
		wg.Go(func() { errs[i] = consume(ctx, cfg, l, ledgers[i]) })
	}
	wg.Wait()
	for _, l := range ledgers {
		errs = append(errs, l.read(ctx, db))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return compare(out, ledgers)
}

// consume runs the chain on one broker until nothing is left, then looks at what is
// dead.
func consume(ctx context.Context, cfg container.Config, l *leg, led *ledger) error {
	msgs, err := messages(l.name)
	if err != nil {
		return err
	}
	cfg.Name, cfg.DeadLetter.To = l.name, l.deadTo
	c, err := container.New(l.source, led, cfg)
	if err != nil {
		return err
	}
	// The dead letters have a plain container of their own.
	dead, err := container.New(l.dead, longshore.HandlerFunc(led.takeDead), container.Config{Name: l.name + " dead", Logger: cfg.Logger, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		return err
	}
	for _, k := range []*container.ListenerContainer{c, dead} {
		if err := k.Start(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		if k == c {
			err = publish(ctx, l.source, msgs)
		}
		if err == nil {
			err = idle(ctx, k, len(msgs))
		}
		if err = errors.Join(err, k.Stop(context.WithoutCancel(ctx))); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// idle waits until nothing is queued, running or waiting, and some have come.
func idle(ctx context.Context, c *container.ListenerContainer, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("not done after a minute: %d messages", n))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for idleLooks := 0; idleLooks < 10; idleLooks++ { // half a second: a message may be on its way
		if ok, err := c.Idle(ctx); err != nil || !ok || c.Stats().Received == 0 {
			idleLooks = -1
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %+v", context.Cause(ctx), c.Stats())
		}
	}
	return nil
}

// database is a file of SQLite with the tables of the inbox and of the effects.
func database(ctx context.Context) (db *sql.DB, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "onechain")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "effects.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	if err == nil {
		_, err = db.ExecContext(ctx, ddl+"CREATE TABLE effects (broker TEXT, name TEXT)")
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, func() error { return errors.Join(db.Close(), os.RemoveAll(dir)) }, nil
}
