// Package mutex makes the effects of a handler in a database happen once per message,
// however often the message is delivered: exactly-once effects over brokers that
// deliver at least once.
//
// The producer inserts a mutex row and the message in its own transaction and
// publishes after the commit:
//
//	store := mutex.SQL(db, mutex.Postgres)
//	outbox, err := mutex.NewOutbox(store, publisher, mutex.OutboxConfig{})
//	err = outbox.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
//		if _, err := tx.ExecContext(ctx, `INSERT INTO orders(id) VALUES ($1)`, o.ID); err != nil {
//			return err
//		}
//		return outbox.Add(ctx, tx, "orders", &longshore.Message{Key: []byte(o.ID), Body: body})
//	})
//
// The consumer's handler runs in a transaction that has taken the row:
//
//	once, err := mutex.New(store, mutex.Config{})
//	pay := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
//		tx, err := mutex.TxFrom(ctx)
//		if err != nil {
//			return err
//		}
//		_, err = tx.ExecContext(ctx, `UPDATE orders SET paid = true WHERE id = $1`, string(d.Key))
//		return err // nil: commit, then ack; an error: roll back, the row stays
//	})
//	c, err := container.New(orders, pay, container.Config{Middleware: []longshore.Middleware{once}})
//
// # What becomes of a delivery
//
//	row taken        the handler runs; nil: commit, ack · error: rollback, redelivery policy
//	row held         a copy of it is being worked on: comes back later, uncounted
//	no row           done before: ack
//	commit unknown   comes back, uncounted; the row decides then
//	database away    comes back, uncounted
//
// The row is deleted at once, in the transaction, which holds its lock just as well
// as a lock and saves a statement. If the session is lost the handler's context ends
// and its commit fails: no session can commit what another owner has taken over.
//
// Effects outside of the transaction (HTTP calls, other databases, publishing by
// hand) stay at-least-once. A handler that publishes uses [Outbox.Add] with its
// transaction.
//
// # Other producers
//
// [Inbox] needs nothing of the producer but an id: the id of each message is
// inserted in the handler's transaction, and one that is there already is done.
//
// # What is left of a crash
//
// [Relay] sends what was committed and not published. [Diagnose] reports what a row and
// a message mean that are still there; see docs/explanation/exactly-once.md for all
// points at which a process can die.
//
// # Other libraries
//
// pgx without database/sql: package mutexpgx. Others work on the *sql.Tx of [TxFrom]:
//
//	sqlx   &sqlx.Tx{Tx: tx, Mapper: db.Mapper}
//	gorm   gorm.Open(postgres.New(postgres.Config{Conn: tx}), &gorm.Config{SkipDefaultTransaction: true})
//	ent    ent.NewClient(ent.Driver(entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})))
package mutex
