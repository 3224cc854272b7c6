// Package mutexpgx is package mutex for users of pgx without database/sql: handlers get
// a pgx.Tx, and taking the row costs no round trip of its own.
//
//	store := mutexpgx.Pool(pool)
//	once, err := mutex.New(store, mutex.Config{})
//	outbox, err := mutexpgx.NewOutbox(pool, publisher, mutex.OutboxConfig{})
//	pay := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
//		tx, err := mutexpgx.TxFrom(ctx)
//		if err != nil {
//			return err
//		}
//		_, err = tx.Exec(ctx, `UPDATE orders SET paid = true WHERE id = $1`, string(d.Key))
//		return err
//	})
//
// The handler must not end the transaction: its Commit and Rollback are refused.
//
// Behind pgbouncer in transaction mode set default_query_exec_mode=cache_describe (or
// exec, or simple_protocol) in the connection string: named statements belong to a
// server connection, and that changes with every transaction.
package mutexpgx
