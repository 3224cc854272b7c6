package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// F-N11: times in the tables come from the database's clock and are compared with it, so
// that neither the producer's clock nor the relay's decides. No statement gets a time
// from here.
func TestNoClockButTheDatabasesDecides(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		clock := &clockless{Store: e.store(), t: t}
		s := &sink{fail: func(m *longshore.Message) error {
			if m.ID == "refused" {
				return errors.New("no")
			}
			return nil
		}}
		o, err := mutex.NewOutbox(clock, s, mutex.OutboxConfig{Tables: e.tables, Poll: 5 * time.Millisecond, Grace: time.Millisecond, RetryDelay: time.Millisecond, MaxAttempts: 3})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := e.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "refused"} {
			if err := o.Add(t.Context(), clocklessExecer{clock, tx}, "orders", message(id, "")); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		e.start(o)
		eventually(t, "one sent, one parked", func() bool {
			b, err := o.Backlog(t.Context())
			if err != nil || b.Age < 0 || b.Age > time.Minute {
				t.Errorf("%+v, %v", b, err)
			}
			return len(s.ids()) == 1 && b.Pending == 1 && b.Parked == 1
		})
		m := e.mutexOn(clock, mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		if n, err := m.Purge(t.Context()); n != 0 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		e.exec("UPDATE "+e.tables.Inbox+" SET at = at - ?", (241 * time.Hour).Milliseconds())
		if n, err := m.Purge(t.Context()); n != 1 || err != nil || e.effectCount() != 1 {
			t.Errorf("purged %d of what is too old, %v; %d effects", n, err, e.effectCount())
		}
	})
}

// clockless is a store that takes no time of this machine.
type clockless struct {
	mutex.Store

	t testing.TB
}

func (c *clockless) look(args []any) {
	for _, a := range args {
		switch v := a.(type) {
		case time.Time:
			c.t.Errorf("a statement gets the time %v", v)
		case int64:
			if year := int64(365 * 24 * time.Hour / time.Millisecond); v > time.Now().UnixMilli()-year && v < time.Now().UnixMilli()+year {
				c.t.Errorf("a statement gets the time %v", time.UnixMilli(v))
			}
		}
	}
}

func (c *clockless) Begin(ctx context.Context) (mutex.Tx, error) {
	tx, err := c.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &clocklessTx{Tx: tx, c: c}, nil
}

type clocklessTx struct {
	mutex.Tx

	c *clockless
}

func (t *clocklessTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	t.c.look(args)
	return t.Tx.Exec(ctx, query, args...)
}

func (t *clocklessTx) Query(ctx context.Context, each func(func(...any) error) error, query string, args ...any) error {
	t.c.look(args)
	return t.Tx.Query(ctx, each, query, args...)
}

type clocklessExecer struct {
	c  *clockless
	tx *sql.Tx
}

func (x clocklessExecer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	x.c.look(args)
	return x.tx.ExecContext(ctx, query, args...)
}

// F-N11: the grace begins with the commit, not with the statement, so a transaction that
// outlasts it is left to its publisher all the same.
func TestTransactionThatOutlastsTheGraceIsSentOnce(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		const grace = 2 * time.Second
		var once sync.Once
		s := &sink{}
		direct := &sink{hook: func() {
			once.Do(func() { <-time.After(300 * time.Millisecond) }) // the relay looks some times
		}}
		e.start(e.outbox(s, mutex.OutboxConfig{}))
		o := e.outbox(direct, mutex.OutboxConfig{Grace: grace})
		err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			err := o.Add(ctx, tx, "orders", message("a", ""))
			<-time.After(grace + grace/4)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(direct.ids()) != 1 || len(s.ids()) != 0 || e.outboxRows() != 0 {
			t.Errorf("published %v, relayed %v, %d rows", direct.ids(), s.ids(), e.outboxRows())
		}
		// A crash after the commit: the relay sends it once the grace is over.
		e.add(o, message("b", ""))
		began := time.Now()
		eventually(t, "the relay", func() bool { return len(s.ids()) == 1 })
		if took := time.Since(began); took < grace {
			t.Errorf("relayed after %v, the grace is %v", took, grace)
		}
	})
}
