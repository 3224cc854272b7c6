//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/history"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// effectsVariable tells a consuming process the prefix of its tables.
const effectsVariable = "LONGSHORE_JEPSEN_EFFECTS"

// effects are rows in PostgreSQL, one for each handling of a message behind the mutex.
type effects struct {
	db     *sql.DB
	prefix string
}

func (e *effects) table() string { return e.prefix + "effects" }

func (e *effects) tables() mutex.Tables {
	return mutex.Tables{Mutex: e.prefix + "mutex", Outbox: e.prefix + "outbox", Shards: e.prefix + "relay", Inbox: e.prefix + "inbox"}
}

// newEffects makes the tables.
func newEffects(ctx context.Context) (*effects, error) {
	env, err := environment(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("PG_DSN", env["PG_DSN"]); err != nil { // for the consuming processes
		return nil, err
	}
	db, err := sql.Open("pgx", env["PG_DSN"])
	if err != nil {
		return nil, err
	}
	e := &effects{db: db, prefix: fmt.Sprintf("jepsen_%d_", time.Now().UnixMilli())}
	ddl, err := mutex.DDL(mutex.Postgres, e.tables())
	if err != nil {
		return nil, err
	}
	for _, query := range []string{ddl, "CREATE TABLE " + e.table() + " (n bigserial PRIMARY KEY, id varchar(64) NOT NULL)"} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// close removes the tables.
func (e *effects) close(ctx context.Context) {
	for _, table := range []string{e.table(), e.tables().Mutex, e.tables().Outbox, e.tables().Shards, e.tables().Inbox} {
		_, _ = e.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table)
	}
	_ = e.db.Close()
}

// openEffects opens them in a consuming process, with the middleware that makes them single.
func openEffects() (*effects, longshore.Middleware, error) {
	db, err := sql.Open("pgx", os.Getenv("PG_DSN"))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(8)
	e := &effects{db: db, prefix: os.Getenv(effectsVariable)}
	once, err := mutex.New(mutex.SQL(db, mutex.Postgres), mutex.Config{Mode: mutex.Inbox, Tables: e.tables(), Consumer: "jepsen",
		Retention: 7 * 24 * time.Hour, BusyDelay: 50 * time.Millisecond})
	return e, once, err
}

func (e *effects) add(ctx context.Context, id string) error {
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+e.table()+" (id) VALUES ($1)", id)
	return err
}

// write writes how often each guarded message had its effect: 0 for one that is done and has
// none.
func (e *effects) write(ctx context.Context, h *history.Writer, folder string) error {
	counts := map[string]int64{}
	events, err := history.Read(folder)
	if err != nil {
		return err
	}
	for _, one := range events {
		if one.Kind == history.Published && guarded(one.Key) {
			counts[one.ID] = 0
		}
	}
	rows, err := e.db.QueryContext(ctx, "SELECT id, count(*) FROM "+e.table()+" GROUP BY id")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		counts[strings.TrimSpace(id)] = n
	}
	for id, n := range counts {
		h.Add(history.Event{Kind: history.Effects, ID: id, N: n})
	}
	return rows.Err()
}
