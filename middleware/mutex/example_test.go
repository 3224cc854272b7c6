package mutex_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/memory"
)

// An order is paid once, although its message comes twice.
func Example() {
	dir, err := os.MkdirTemp("", "mutex")
	check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	check(err)
	defer func() { _ = db.Close() }()
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	check(err)
	ctx := context.Background()
	_, err = db.ExecContext(ctx, ddl+"CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0)")
	check(err)

	broker := memory.New(memory.Config{})
	publisher, err := broker.Publisher(memory.PublisherConfig{})
	check(err)
	store := mutex.SQL(db, mutex.SQLite)
	once, err := mutex.New(store, mutex.Config{})
	check(err)
	outbox, err := mutex.NewOutbox(store, publisher, mutex.OutboxConfig{})
	check(err)

	// The producer: business data, mutex row and message in one transaction.
	msg := &longshore.Message{Key: []byte("o-1")}
	err = outbox.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id) VALUES ('o-1')`); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, "orders", msg)
	})
	check(err)
	check(publisher.Publish(ctx, "orders", msg)) // and a copy

	// The consumer: its effect and the end of the row are one commit.
	seen := make(chan longshore.Verdict, 2)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		tx, err := mutex.TxFrom(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE orders SET paid = paid + 1 WHERE id = ?`, string(d.Key))
		return err
	}), container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{verdicts(seen), once}})
	check(err)
	check(c.Start(ctx))
	fmt.Println(<-seen, <-seen)
	check(c.Stop(ctx))

	var paid int
	check(db.QueryRowContext(ctx, `SELECT paid FROM orders`).Scan(&paid))
	fmt.Println("paid", paid, "time")
	// Output:
	// ack ack
	// paid 1 time
}

func verdicts(to chan longshore.Verdict) longshore.Middleware {
	return longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
		return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			err := next.Handle(ctx, d)
			if v, _ := longshore.VerdictOf(err); v == longshore.VerdictAck {
				to <- v
			}
			return err
		})
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
