package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	_ "modernc.org/sqlite" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

const (
	orders    = 300
	consumers = 2
	kills     = 8
	queue     = "orders"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	err := consumeIfChild(ctx)
	if errors.Is(err, errParent) {
		err = run(ctx, os.Stdout, os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the parent: broker, producer, killer and judge.
func run(ctx context.Context, out io.Writer, program string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "exactlyonce")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := create(ctx, db); err != nil {
		return err
	}
	server, err := amqptest.Start(amqptest.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()

	crew := newCrew(program, server.URL, filepath.Join(dir, "shop.db"))
	defer crew.stop()
	if err := crew.start(ctx); err != nil {
		return err
	}
	copies, err := produce(ctx, db, server.URL, crew)
	if err != nil {
		return err
	}
	if err := settled(ctx, db); err != nil {
		return err
	}
	crew.stop()
	return judge(ctx, out, db, copies, crew.killed)
}

func open(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
}

func create(ctx context.Context, db *sql.DB) error {
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, ddl+"CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0)")
	return err
}

// produce inserts the orders and publishes them with the same commit. Killing goes on
// meanwhile.
func produce(ctx context.Context, db *sql.DB, url string, crew *crew) (copies int, err error) {
	pub, err := amqp.New(url, amqp.Config{}).Publisher(amqp.PublisherConfig{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = pub.Close(context.WithoutCancel(ctx)) }()
	outbox, err := mutex.NewOutbox(mutex.SQL(db, mutex.SQLite), pub, mutex.OutboxConfig{Grace: time.Second, Logger: zap.NewNop()})
	if err != nil {
		return 0, err
	}
	relay := outbox.Relay() // sends what could not be sent at once
	if err := relay.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, relay.Stop(context.WithoutCancel(ctx))) }()
	for i := range orders {
		id := fmt.Sprintf("o-%d", i)
		m := &longshore.Message{Type: "order", Body: []byte(id)}
		err := outbox.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id) VALUES (?)`, id); err != nil {
				return err
			}
			return outbox.Add(ctx, tx, queue, m)
		})
		if err != nil {
			return 0, err
		}
		if i%3 == 0 {
			copies++
			if err := pub.Publish(ctx, queue, m); err != nil {
				return 0, err
			}
		}
		if i%(orders/kills) == orders/kills/2 {
			if err := crew.killOne(ctx); err != nil {
				return 0, err
			}
		}
	}
	return copies, nil
}

// settled waits until no mutex row is left.
func settled(ctx context.Context, db *sql.DB) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var left int
		err := db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM longshore_mutex) + (SELECT count(*) FROM longshore_outbox)`).Scan(&left)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d rows are left: %w", left, ctx.Err())
		}
	}
}

func judge(ctx context.Context, out io.Writer, db *sql.DB, copies, killed int) error {
	var all, once int
	if err := db.QueryRowContext(ctx, `SELECT count(*), sum(paid = 1) FROM orders`).Scan(&all, &once); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d orders, %d published twice, %d consumers killed: %d paid once\n", all, copies, killed, once)
	if all != orders || once != orders {
		return fmt.Errorf("%d of %d orders were not paid exactly once", all-once, all)
	}
	return nil
}
