// Package effects counts what handlers do: a row in PostgreSQL for each message, written in the
// transaction of the inbox that is to make it single. The process that judges makes the tables
// ([Create]); the processes that handle, and are killed, open them ([Open]).
package effects

import (
	"context"
	"database/sql"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// Table has the effects of one run.
type Table struct {
	db     *sql.DB
	prefix string // of its tables, so that runs do not meet
}

// Row is one effect.
type Row struct{ ID, Key string }

func (t *Table) rows() string { return t.prefix + "effects" }

func (t *Table) tables() mutex.Tables {
	return mutex.Tables{Mutex: t.prefix + "mutex", Outbox: t.prefix + "outbox", Shards: t.prefix + "relay", Inbox: t.prefix + "inbox"}
}

// Create makes the tables.
func Create(ctx context.Context, dsn, prefix string) (*Table, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	t := &Table{db: db, prefix: prefix}
	ddl, err := mutex.DDL(mutex.Postgres, t.tables())
	if err != nil {
		return nil, err
	}
	for _, query := range []string{ddl, "CREATE TABLE " + t.rows() + " (n bigserial PRIMARY KEY, id varchar(64) NOT NULL, key varchar(64) NOT NULL)"} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			t.Drop(ctx)
			return nil, err
		}
	}
	return t, nil
}

// Open opens the tables in a process that handles messages, with the middleware that makes their
// effects single.
func Open(dsn, prefix string, log *zap.Logger) (*Table, longshore.Middleware, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	t := &Table{db: db, prefix: prefix}
	once, err := mutex.New(mutex.SQL(db, mutex.Postgres), mutex.Config{Mode: mutex.Inbox, Tables: t.tables(), Consumer: "effects",
		Retention: 7 * 24 * time.Hour, BusyDelay: 50 * time.Millisecond, Logger: log})
	return t, once, err
}

// Add writes an effect in the transaction of the handler's context.
func (t *Table) Add(ctx context.Context, id, key string) error {
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+t.rows()+" (id, key) VALUES ($1, $2)", id, key)
	return err
}

// All returns the effects in the order in which they were written.
func (t *Table) All(ctx context.Context) (all []Row, err error) {
	rows, err := t.db.QueryContext(ctx, "SELECT id, key FROM "+t.rows()+" ORDER BY n")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of Err
	for rows.Next() {
		var one Row
		if err := rows.Scan(&one.ID, &one.Key); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// Prefix is what Open needs.
func (t *Table) Prefix() string { return t.prefix }

// Close ends the connections; nothing is removed.
func (t *Table) Close() { _ = t.db.Close() } // what was written is written

// Drop removes the tables, and ends the connections.
func (t *Table) Drop(ctx context.Context) {
	for _, table := range []string{t.rows(), t.tables().Mutex, t.tables().Outbox, t.tables().Shards, t.tables().Inbox} {
		_, _ = t.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table) // the database is the tests' own, and the prefix is used once
	}
	t.Close()
}
