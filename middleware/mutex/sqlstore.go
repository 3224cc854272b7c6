package mutex

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

type sqlStore struct {
	db      *sql.DB
	dialect Dialect
}

// SQL is a [Store] on a *sql.DB with a driver of the dialect. The handler's
// transaction is a *sql.Tx: see [TxFrom].
//
// The pool should hold one connection more than the container has workers, and keep
// them: db.SetMaxOpenConns(n) and db.SetMaxIdleConns(n).
func SQL(db *sql.DB, d Dialect) Store { return &sqlStore{db: db, dialect: d} }

func (s *sqlStore) Dialect() Dialect { return s.dialect }
func (s *sqlStore) MaxConns() int    { return s.db.Stats().MaxOpenConnections }

// Begin pins a connection, because MySQL needs statements before and after the
// transaction on the same one.
func (s *sqlStore) Begin(ctx context.Context) (Tx, error) {
	life, end := context.WithCancel(ctx)
	conn, err := s.db.Conn(life)
	if err != nil {
		end()
		return nil, err
	}
	t := &sqlTx{conn: conn, dialect: s.dialect, end: end}
	if err := t.begin(life); err != nil {
		_ = t.Rollback(context.WithoutCancel(ctx))
		return nil, err
	}
	return t, nil
}

func (t *sqlTx) begin(ctx context.Context) (err error) {
	if t.dialect == MySQL {
		// A deadlock ends the whole transaction, and the session goes on in autocommit:
		// what a handler that hides the error does next would be committed.
		t.manual = true
		if _, err := t.conn.ExecContext(ctx, "SET autocommit=0"); err != nil {
			return err
		}
	}
	if t.tx, err = t.conn.BeginTx(ctx, optionsOf(t.dialect)); err != nil {
		return err
	}
	if t.dialect == MySQL {
		_, err = t.tx.ExecContext(ctx, "SAVEPOINT longshore") // gone at the end: the transaction is not ours any more
	}
	return err
}

// optionsOf asks for READ COMMITTED, except of drivers that refuse any wish:
// SQLite is serializable by itself.
func optionsOf(d Dialect) *sql.TxOptions {
	if d == SQLite {
		return nil
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// discard closes a connection of which the state is not known.
func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
}
