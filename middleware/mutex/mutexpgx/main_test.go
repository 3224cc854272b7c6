package mutexpgx_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/middleware/mutex/mutexpgx"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.Postgres) }

type env struct {
	t       testing.TB
	pool    *pgxpool.Pool
	tables  mutex.Tables
	effects string
	trips   atomic.Int64 // writes on the sockets
}

func open(t testing.TB) *env {
	t.Helper()
	e := &env{t: t}
	cfg, err := pgxpool.ParseConfig(brokertest.PG(t))
	if err != nil {
		t.Fatal(err)
	}
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &counted{Conn: c, n: &e.trips}, err
	}
	if e.pool, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.pool.Close)
	p := strings.ReplaceAll(brokertest.Name(t, "p"), "-", "_") + "_"
	e.tables = mutex.Tables{Mutex: p + "mutex", Outbox: p + "outbox", Shards: p + "relay", Inbox: p + "inbox"}
	e.effects = p + "effects"
	ddl, err := mutex.DDL(mutex.Postgres, e.tables)
	if err != nil {
		t.Fatal(err)
	}
	e.exec(ddl + "CREATE TABLE " + e.effects + " (id text)")
	t.Cleanup(func() {
		for _, table := range []string{e.tables.Mutex, e.tables.Outbox, e.tables.Shards, e.tables.Inbox, e.effects} {
			_, _ = e.pool.Exec(context.Background(), "DROP TABLE "+table)
		}
	})
	return e
}

// counted counts writes: pgx makes one for each round trip.
type counted struct {
	net.Conn

	n *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

func (e *env) exec(query string) {
	e.t.Helper()
	if _, err := e.pool.Exec(context.Background(), query); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
}

func (e *env) count(table string) (n int) {
	e.t.Helper()
	if err := e.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

func (e *env) mutex(cfg mutex.Config) *mutex.Mutex {
	e.t.Helper()
	cfg.Tables, cfg.Logger = e.tables, zap.NewNop()
	m, err := mutex.New(mutexpgx.Pool(e.pool), cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

func (e *env) write(ctx context.Context) error {
	tx, err := mutexpgx.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO "+e.effects+" (id) VALUES ('x')")
	return err
}

func delivery(id string) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Message = longshore.Message{ID: id, Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: id}}}
	return d
}

func (e *env) run(m *mutex.Mutex, id string, h func(ctx context.Context) error) longshore.Verdict {
	e.t.Helper()
	err := m.Wrap(longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error { return h(ctx) })).Handle(e.t.Context(), delivery(id))
	v, _ := longshore.VerdictOf(err)
	return v
}

func (e *env) want(what string, got, want longshore.Verdict, rows, effects int) {
	e.t.Helper()
	if got != want || e.count(e.tables.Mutex) != rows || e.count(e.effects) != effects {
		e.t.Errorf("%s: %v with %d rows and %d effects, want %v, %d, %d", what, got, e.count(e.tables.Mutex), e.count(e.effects), want, rows, effects)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	e := open(t)
	m := e.mutex(mutex.Config{})
	if err := m.Check(t.Context(), longshore.Facts{}); err != nil {
		t.Fatal(err)
	}
	e.exec("INSERT INTO " + e.tables.Mutex + " (id) VALUES ('a')")
	e.want("failed", e.run(m, "a", func(ctx context.Context) error { return errors.Join(e.write(ctx), errors.New("no")) }), longshore.VerdictNone, 1, 0)
	e.want("hidden error", e.run(m, "a", func(ctx context.Context) error {
		tx, _ := mutexpgx.TxFrom(ctx)
		_, _ = tx.Exec(ctx, "SELECT 1/0")
		return nil
	}), longshore.VerdictNone, 1, 0)
	e.want("busy", e.run(m, "a", func(ctx context.Context) error {
		if v := e.run(m, "a", e.write); v != longshore.VerdictRelease {
			t.Errorf("the second one: %v", v)
		}
		return errors.New("no")
	}), longshore.VerdictNone, 1, 0)
	e.want("savepoint", e.run(m, "a", func(ctx context.Context) error {
		tx, err := mutexpgx.TxFrom(ctx)
		if err != nil {
			return err
		}
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("the handler could end the transaction")
		}
		part, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		_, _ = part.Exec(ctx, "SELECT 1/0")
		return errors.Join(part.Rollback(ctx), e.write(ctx))
	}), longshore.VerdictAck, 0, 1)
	e.want("again", e.run(m, "a", e.write), longshore.VerdictAck, 0, 1)
	if n := e.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
}

// F-H04: at the latest at its next statement the handler's context ends.
func TestLostSessionEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.exec("INSERT INTO " + e.tables.Mutex + " (id) VALUES ('a')")
	e.want("lost", e.run(e.mutex(mutex.Config{}), "a", func(ctx context.Context) error {
		tx, err := mutexpgx.TxFrom(ctx)
		if err != nil {
			return err
		}
		var pid int
		if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		if _, err := e.pool.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err != nil {
			return err
		}
		if e.write(ctx) == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), longshore.CodeConnLost) {
			t.Errorf("after a statement in a dead session: %v", context.Cause(ctx))
		}
		return nil
	}), longshore.VerdictRelease, 1, 0)
}

func TestInboxAndOutbox(t *testing.T) {
	t.Parallel()
	e := open(t)
	s := &sink{}
	o, err := mutexpgx.NewOutbox(e.pool, s, mutex.OutboxConfig{Tables: e.tables, Logger: zap.NewNop(), NoMutex: true})
	if err != nil {
		t.Fatal(err)
	}
	m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
	for range 3 {
		if v := e.run(m, "a", func(ctx context.Context) error {
			tx, err := mutexpgx.TxFrom(ctx)
			if err != nil {
				return err
			}
			return errors.Join(e.write(ctx), o.Add(ctx, tx, "next", &longshore.Message{}))
		}); v != longshore.VerdictAck {
			t.Fatal(v)
		}
	}
	err = o.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		return o.Add(ctx, tx, "next", &longshore.Message{Key: []byte("k")})
	})
	if err != nil || s.n.Load() != 2 || e.count(e.effects) != 1 || e.count(e.tables.Outbox) != 0 {
		t.Errorf("%v, %d published, %d effects, %d in the outbox", err, s.n.Load(), e.count(e.effects), e.count(e.tables.Outbox))
	}
}

type sink struct{ n atomic.Int64 }

func (s *sink) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	s.n.Add(int64(len(msgs)))
	return nil
}

func (s *sink) Close(context.Context) error { return nil }

// Taking the row costs no round trip over the handler's own transaction.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	e := open(t)
	m := e.mutex(mutex.Config{})
	measure := func(f func()) int64 {
		f() // prepares the statements
		before := e.trips.Load()
		f()
		return e.trips.Load() - before
	}
	own := measure(func() {
		err := pgx.BeginFunc(t.Context(), e.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO "+e.effects+" (id) VALUES ('x')")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	e.exec("INSERT INTO " + e.tables.Mutex + " (id) VALUES ('a'), ('b')")
	ids := []string{"a", "b"}
	with := measure(func() {
		if v := e.run(m, ids[0], e.write); v != longshore.VerdictAck {
			t.Fatal(v)
		}
		ids = ids[1:]
	})
	if own != 3 || with != own {
		t.Errorf("%d round trips with the mutex, %d without", with, own)
	}
	if e.count(e.tables.Mutex) != 0 {
		t.Error("a row was not taken")
	}
}
