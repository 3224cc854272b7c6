package mutex_test

import (
	"context"
	"database/sql"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// counted counts writes on a socket: these drivers make one for each round trip.
type counted struct {
	net.Conn

	n *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

// countTrips replaces the pool by one that counts.
func (e *env) countTrips() *atomic.Int64 {
	n := &atomic.Int64{}
	switch e.dialect {
	case mutex.Postgres:
		cfg, err := pgx.ParseConfig(e.dsn)
		if err != nil {
			e.t.Fatal(err)
		}
		dial := cfg.DialFunc
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return &counted{Conn: c, n: n}, err
		}
		e.db = stdlib.OpenDB(*cfg, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	default:
		cfg, err := mysql.ParseDSN(e.dsn)
		if err != nil {
			e.t.Fatal(err)
		}
		cfg.InterpolateParams = true // else each statement is prepared anew
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &counted{Conn: c, n: n}, err
		}
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			e.t.Fatal(err)
		}
		e.db = sql.OpenDB(connector)
	}
	e.db.SetMaxOpenConns(1)
	e.t.Cleanup(func() { _ = e.db.Close() })
	return n
}

// On PostgreSQL taking the row is one statement over the handler's own transaction. On
// MySQL it is a lock and a delete, two for the savepoint, two for autocommit, and a
// commit that can be given up.
func TestRoundTrips(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		n := e.countTrips()
		m := e.mutex(mutex.Config{})
		own := func() {
			tx, err := e.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), e.bind("INSERT INTO "+e.effects+" (id, n) VALUES (?, 1)"), "x"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		measure := func(f func()) int64 {
			f() // prepares the statements
			before := n.Load()
			f()
			return n.Load() - before
		}
		without := measure(own)
		e.row("a")
		e.row("b")
		ids := []string{"a", "b"}
		with := measure(func() {
			is(t, run(t, m, e.effect(nil), delivery(ids[0])), longshore.VerdictAck)
			ids = ids[1:]
		})
		want := map[mutex.Dialect]int64{mutex.Postgres: 1, mutex.MySQL: 7}[e.dialect]
		if with-without != want {
			t.Errorf("%d round trips with the mutex, %d without: %d more, want %d", with, without, with-without, want)
		}
	})
}
