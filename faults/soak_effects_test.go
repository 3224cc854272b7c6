package faults

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// soakEffects are rows in PostgreSQL, one for each message that was handled, in a
// transaction with the inbox. nil: the leg counts none.
type soakEffects struct {
	db     *sql.DB
	prefix string
}

func (e *soakEffects) table() string { return e.prefix + "effects" }

func (e *soakEffects) tables() mutex.Tables {
	return mutex.Tables{Mutex: e.prefix + "mutex", Outbox: e.prefix + "outbox", Shards: e.prefix + "relay", Inbox: e.prefix + "inbox"}
}

// newSoakEffects makes the tables of a leg, which go with the test.
func newSoakEffects(t *testing.T) *soakEffects {
	t.Helper()
	db, err := sql.Open("pgx", brokertest.PG(t))
	if err != nil {
		t.Fatal(err)
	}
	e := &soakEffects{db: db, prefix: strings.ReplaceAll(brokertest.Name(t, "soak"), "-", "_") + "_"}
	e.prefix = e.prefix[max(0, len(e.prefix)-20):] // a name of PostgreSQL has 63 bytes
	ddl, err := mutex.DDL(mutex.Postgres, e.tables())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, table := range []string{e.table(), e.tables().Mutex, e.tables().Outbox, e.tables().Shards, e.tables().Inbox} {
			_, _ = db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+table)
		}
		_ = db.Close()
	})
	for _, query := range []string{ddl, "CREATE TABLE " + e.table() + " (n bigserial PRIMARY KEY, id varchar(64) NOT NULL, key varchar(64) NOT NULL)"} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// openSoakEffects opens them in a child, with the middleware that makes them single.
func openSoakEffects(prefix string) (*soakEffects, []longshore.Middleware, error) {
	if prefix == "" {
		return nil, nil, nil
	}
	db, err := sql.Open("pgx", os.Getenv(brokertest.Postgres))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	e := &soakEffects{db: db, prefix: prefix}
	once, err := mutex.New(mutex.SQL(db, mutex.Postgres), mutex.Config{Mode: mutex.Inbox, Tables: e.tables(), Consumer: "soak",
		Retention: 7 * 24 * time.Hour, BusyDelay: 50 * time.Millisecond, Logger: soakLogger()})
	return e, []longshore.Middleware{once}, err
}

func (e *soakEffects) close() {
	if e != nil {
		_ = e.db.Close()
	}
}

func (e *soakEffects) add(ctx context.Context, d *longshore.Delivery) error {
	if e == nil {
		return nil
	}
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+e.table()+" (id, key) VALUES ($1, $2)", string(d.Body), string(d.Key))
	return err
}

// judge wants one effect of each message that was sent, those of a key in order.
func (e *soakEffects) judge(t *testing.T, kind string, sent int) {
	t.Helper()
	rows, err := e.db.QueryContext(t.Context(), "SELECT id, key FROM "+e.table()+" ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	effects, disorder := map[string]int{}, 0
	latest := map[string]int{}
	for rows.Next() {
		var id, key string
		if err := rows.Scan(&id, &key); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(id)
		if err != nil {
			t.Errorf("%s: an effect of %q, which was never sent", kind, id)
		}
		if effects[id]++; n < latest[key] {
			disorder++
		}
		latest[key] = max(latest[key], n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	none, several := 0, 0
	for i := range sent {
		switch effects[fmt.Sprint(i)] {
		case 0:
			none++
		case 1:
		default:
			several++
		}
	}
	t.Logf("%s: %d effects of %d messages: %d without, %d with several, %d out of order", kind, len(effects), sent, none, several, disorder)
	if none+several+disorder > 0 || len(effects) != sent {
		t.Errorf("%s: want one effect of each of %d messages, in order", kind, sent)
	}
}
