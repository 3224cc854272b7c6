package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/zap"
	_ "modernc.org/sqlite"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	brokertest.Main(m, brokertest.Postgres, brokertest.MariaDBDSN)
}

// env is a database with tables of its own for one test.
type env struct {
	t       testing.TB
	db      *sql.DB
	dialect mutex.Dialect
	dsn     string
	driver  string
	tables  mutex.Tables
	effects string
}

// each runs the test on every database that is there. SQLite always is.
func each(t *testing.T, f func(t *testing.T, e *env)) {
	for _, d := range []mutex.Dialect{mutex.SQLite, mutex.Postgres, mutex.MySQL} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			f(t, open(t, d))
		})
	}
}

// servers leaves out SQLite, which has no row locks and no sessions.
func servers(t *testing.T, f func(t *testing.T, e *env)) {
	for _, d := range []mutex.Dialect{mutex.Postgres, mutex.MySQL} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			f(t, open(t, d))
		})
	}
}

func open(t testing.TB, d mutex.Dialect) *env {
	t.Helper()
	e := &env{t: t, dialect: d}
	switch d {
	case mutex.Postgres:
		e.driver, e.dsn = "pgx", brokertest.PG(t)
	case mutex.MySQL:
		e.driver, e.dsn = "mysql", brokertest.MariaDB(t)
	default:
		e.driver, e.dsn = "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
	}
	e.db = e.connect()
	p := strings.ReplaceAll(brokertest.Name(t, "m"), "-", "_") + "_"
	e.tables = mutex.Tables{Mutex: p + "mutex", Outbox: p + "outbox", Shards: p + "relay", Inbox: p + "inbox"}
	e.effects = p + "effects"
	e.create()
	return e
}

// isMySQL tells MySQL from MariaDB, which has the same dialect.
func (e *env) isMySQL() bool {
	version := ""
	if e.dialect != mutex.MySQL {
		return false
	}
	if err := e.db.QueryRowContext(e.t.Context(), "SELECT version()").Scan(&version); err != nil {
		e.t.Fatal(err)
	}
	return !strings.Contains(version, "MariaDB")
}

func (e *env) connect() *sql.DB {
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		e.t.Fatal(err)
	}
	db.SetMaxIdleConns(20)
	db.SetMaxOpenConns(60) // the servers take about a hundred
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (e *env) create() {
	ddl, err := mutex.DDL(e.dialect, e.tables)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, stmt := range strings.Split(ddl, ";\n") {
		if strings.TrimSpace(stmt) != "" {
			e.exec(stmt)
		}
	}
	e.exec("CREATE TABLE " + e.effects + " (id varchar(64) NOT NULL, n integer)")
	e.t.Cleanup(func() {
		for _, table := range []string{e.tables.Mutex, e.tables.Outbox, e.tables.Shards, e.tables.Inbox, e.effects} {
			_, _ = e.db.ExecContext(context.Background(), "DROP TABLE "+table)
		}
	})
}

func (e *env) exec(query string, args ...any) {
	e.t.Helper()
	if _, err := e.db.ExecContext(context.Background(), e.bind(query), args...); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
}

func (e *env) count(query string, args ...any) (n int) {
	e.t.Helper()
	if err := e.db.QueryRowContext(context.Background(), e.bind(query), args...).Scan(&n); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// bind turns ? into the dialect's placeholders.
func (e *env) bind(query string) string {
	if e.dialect != mutex.Postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		fmt.Fprintf(&b, "$%d", n)
	}
	return b.String()
}

func (e *env) row(id string) { e.exec("INSERT INTO "+e.tables.Mutex+" (id) VALUES (?)", id) }

func (e *env) rows() int        { return e.count("SELECT count(*) FROM " + e.tables.Mutex) }
func (e *env) effectCount() int { return e.count("SELECT count(*) FROM " + e.effects) }

func (e *env) store() mutex.Store { return mutex.SQL(e.db, e.dialect) }

func (e *env) mutex(cfg mutex.Config) *mutex.Mutex {
	e.t.Helper()
	return e.mutexOn(e.store(), cfg)
}

func (e *env) mutexOn(s mutex.Store, cfg mutex.Config) *mutex.Mutex {
	e.t.Helper()
	if cfg.Tables.Mutex == "" {
		cfg.Tables = e.tables
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	m, err := mutex.New(s, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// effect is a handler that writes one row and then returns err.
func (e *env) effect(err error) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		return errors.Join(e.write(ctx, d.ID), err)
	})
}

func (e *env) write(ctx context.Context, id string) error {
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, e.bind("INSERT INTO "+e.effects+" (id, n) VALUES (?, 1)"), id)
	return err
}

func delivery(id string) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Message = longshore.Message{ID: id, Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: id}}}
	return d
}

// run hands the delivery to h behind m.
func run(t testing.TB, m longshore.Middleware, h longshore.Handler, d *longshore.Delivery) error {
	t.Helper()
	return m.Wrap(h).Handle(t.Context(), d)
}

// is checks the verdict of a result.
func is(t testing.TB, err error, want longshore.Verdict) {
	t.Helper()
	if v, _ := longshore.VerdictOf(err); v != want {
		t.Fatalf("verdict %q, want %q: %v", v, want, err)
	}
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
		<-tick.C
	}
}
