package recipes

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// The order and its message are one transaction; the effect of the message and the end of
// its mutex row are another. So the effect happens exactly once, also for a copy.
func TestOutboxWithPostgres(t *testing.T) {
	ctx := t.Context()
	db, err := sql.Open("pgx", brokertest.PG(t)) // "postgres://app@db/shop"
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	name := strings.ReplaceAll(brokertest.Name(t, "outbox"), "-", "_")
	tables := mutex.Tables{Mutex: name + "_mutex", Outbox: name + "_outbox", Shards: name + "_relay", Inbox: name + "_inbox"} // mutex.Tables{}
	ddl, err := mutex.DDL(mutex.Postgres, tables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, ddl+"CREATE TABLE "+name+"_orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // last: the container has stopped by then
		for _, table := range []string{"_mutex", "_outbox", "_relay", "_inbox", "_orders"} {
			_, _ = db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name+table)
		}
	})

	broker := amqp.New(amqptest.New(t).URL, amqp.Config{}) // "amqp://localhost"
	publisher, err := broker.Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store := mutex.SQL(db, mutex.Postgres)
	once, err := mutex.New(store, mutex.Config{Tables: tables})
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := mutex.NewOutbox(store, publisher, mutex.OutboxConfig{Tables: tables}) // a service also runs outbox.Relay()
	if err != nil {
		t.Fatal(err)
	}
	pay := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		tx, err := mutex.TxFrom(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+name+"_orders SET paid = paid + 1 WHERE id = $1", string(d.Body))
		return err // nil: commit, then ack
	})
	c, err := container.New(broker.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), pay, container.Config{
		DeadLetter: container.DeadLetter{To: "orders.dlq"}, Middleware: []longshore.Middleware{once}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)

	order := &longshore.Message{Body: []byte("o-1")}
	err = outbox.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+name+"_orders (id) VALUES ('o-1')"); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, "orders", order)
	}) // publishes after the commit
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(ctx, "orders", order); err != nil { // a copy
		t.Fatal(err)
	}
	eventually(t, "both are acked", func() bool { return c.Stats().Acked == 2 })
	var paid int
	if err := db.QueryRowContext(ctx, "SELECT paid FROM "+name+"_orders").Scan(&paid); err != nil || paid != 1 {
		t.Errorf("paid %d times, %v", paid, err)
	}
	stop, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := publisher.Close(stop); err != nil {
		t.Error(err)
	}
}
