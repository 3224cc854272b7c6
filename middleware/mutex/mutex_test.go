package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

func TestRowIsTakenWithTheEffectAndACopyIsAcked(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		m := e.mutex(mutex.Config{})
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		if e.rows() != 0 || e.effectCount() != 1 {
			t.Errorf("%d rows, %d effects", e.rows(), e.effectCount())
		}
		if s := m.Stats(); s.Acquired != 1 || s.Absent != 1 || s.AbsentFirst != 1 || s.Committed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWhatAHandlersResultLeaves(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		err     error
		verdict longshore.Verdict
		rows    int
	}{
		{"an error leaves the row", boom, longshore.VerdictNone, 1},
		{"a retry leaves the row", longshore.Retry(boom, time.Second), longshore.VerdictRetry, 1},
		{"a rejection leaves the row for a rerun", longshore.Reject(boom), longshore.VerdictReject, 1},
		{"a discarded message is done", longshore.Discard(boom), longshore.VerdictDiscard, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.row("a")
				err := run(t, e.mutex(mutex.Config{}), e.effect(c.err), delivery("a"))
				is(t, err, c.verdict)
				if !errors.Is(err, boom) || e.rows() != c.rows || e.effectCount() != 0 {
					t.Errorf("%v, %d rows, %d effects", err, e.rows(), e.effectCount())
				}
			})
		})
	}
}

func TestPanicRollsBack(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = run(t, e.mutex(mutex.Config{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				_ = e.write(ctx, d.ID)
				return []error{nil}[len(d.ID)] // there is no second
			}), delivery("a"))
		}()
		if e.rows() != 1 || e.effectCount() != 0 || e.db.Stats().InUse != 0 {
			t.Errorf("%d rows, %d effects, %d connections in use", e.rows(), e.effectCount(), e.db.Stats().InUse)
		}
	})
}

func TestHandlerThatEndsTheTransactionItself(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		m := e.mutex(mutex.Config{})
		is(t, run(t, m, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			tx, _ := mutex.TxFrom(ctx)
			return errors.Join(e.write(ctx, d.ID), tx.Commit())
		}), delivery("a")), longshore.VerdictRelease)
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		if e.effectCount() != 1 {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}

func TestTransactionIsNotBegunForWhomIsStopped(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(longshore.ErrStopping)
		err := e.mutex(mutex.Config{}).Wrap(e.effect(nil)).Handle(ctx, delivery("a"))
		if !errors.Is(err, longshore.ErrStopping) || e.rows() != 1 {
			t.Errorf("%v, %d rows", err, e.rows())
		}
	})
}

// A handler whose context was cancelled but that has done its work is done.
func TestCancelledContextDoesNotUndoASuccess(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		ctx, cancel := context.WithCancel(t.Context())
		err := e.mutex(mutex.Config{}).Wrap(longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			err := e.write(ctx, d.ID)
			cancel()
			return err
		})).Handle(ctx, delivery("a"))
		is(t, err, longshore.VerdictAck)
		if e.rows() != 0 || e.effectCount() != 1 {
			t.Errorf("%d rows, %d effects", e.rows(), e.effectCount())
		}
	})
}

func TestDeliveryWithoutAnID(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		d := delivery("a")
		d.Headers = nil
		is(t, run(t, e.mutex(mutex.Config{}), e.effect(nil), d), longshore.VerdictReject)
		is(t, run(t, e.mutex(mutex.Config{NoHeader: mutex.PassThrough}), e.effect(nil), d), longshore.VerdictAck)
		m := e.mutex(mutex.Config{NoHeader: mutex.UseInbox, Consumer: "c", Retention: 240 * time.Hour})
		is(t, run(t, m, e.effect(nil), d), longshore.VerdictAck)
		is(t, run(t, m, e.effect(nil), d), longshore.VerdictAck)
		if e.effectCount() != 2 {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}

func TestHeaderOfOtherNamesAndKinds(t *testing.T) {
	e := open(t, mutex.SQLite)
	e.row("17")
	for _, v := range []any{int64(17), []byte("17"), uint32(17), "17"} {
		d := delivery("")
		d.Headers = longshore.Headers{{Name: "x-mutex-id", Value: v}}
		is(t, run(t, e.mutex(mutex.Config{}), e.effect(errors.New("no")), d), longshore.VerdictNone)
	}
}

func TestMissingRowIsConfirmedOnce(t *testing.T) {
	e := open(t, mutex.SQLite)
	m := e.mutex(mutex.Config{Absent: mutex.Confirm})
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictRelease)
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
	d := delivery("b")
	d.Origin.Redelivered = true
	is(t, run(t, m, e.effect(nil), d), longshore.VerdictAck)
}

// A table of the original pattern, with other names.
func TestExistingTableByItsNames(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		legacy := e.effects + "_legacy"
		e.exec("CREATE TABLE " + legacy + " (MUTEX bigint NOT NULL PRIMARY KEY)")
		t.Cleanup(func() { _, _ = e.db.ExecContext(context.Background(), "DROP TABLE "+legacy) })
		e.exec("INSERT INTO " + legacy + " (MUTEX) VALUES (7)")
		e.exec("INSERT INTO " + legacy + " (MUTEX) VALUES (8)")
		m := e.mutex(mutex.Config{Tables: mutex.Tables{Mutex: legacy, ID: "MUTEX", CreatedAt: "-"}})
		if err := m.Check(t.Context(), longshore.Facts{}); err != nil {
			t.Fatal(err)
		}
		is(t, run(t, m, e.effect(nil), delivery("7")), longshore.VerdictAck)
		if n := e.count("SELECT count(*) FROM " + legacy); n != 1 || e.effectCount() != 1 {
			t.Errorf("%d rows, %d effects", n, e.effectCount())
		}
	})
}

func TestCheckRefusesWhatCannotWork(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		if err := e.mutex(mutex.Config{}).Check(t.Context(), longshore.Facts{Manual: true}); !errors.Is(err, longshore.CodeConfig) {
			t.Errorf("manual settling: %v", err)
		}
		missing := e.mutex(mutex.Config{Tables: mutex.Tables{Mutex: "no_such_table"}})
		if err := missing.Check(t.Context(), longshore.Facts{}); !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("missing table: %v", err)
		}
		bare := e.effects // no index at all
		if err := e.mutex(mutex.Config{Tables: mutex.Tables{Mutex: bare}}).Check(t.Context(), longshore.Facts{}); !errors.Is(err, longshore.CodeMismatch) {
			t.Errorf("no unique index: %v", err)
		}
		if err := e.mutex(mutex.Config{}).Check(t.Context(), longshore.Facts{}); err != nil {
			t.Error(err)
		}
	})
}

// F-H06: the rule is warned of with both numbers.
func TestSmallPoolIsWarnedOf(t *testing.T) {
	e := open(t, mutex.SQLite)
	e.db.SetMaxOpenConns(2)
	core, logs := observer.New(zap.WarnLevel)
	m := e.mutex(mutex.Config{Logger: zap.New(core)})
	if err := m.Check(t.Context(), longshore.Facts{Container: "c", WorkersMax: 20}); err != nil {
		t.Fatal(err)
	}
	if logs.Len() != 1 || logs.All()[0].ContextMap()["pool"] != int64(2) || logs.All()[0].ContextMap()["workers"] != int64(20) {
		t.Errorf("%v", logs.All())
	}
}

func TestConfigurationNamesAllMistakesAtOnce(t *testing.T) {
	e := open(t, mutex.SQLite)
	_, err := mutex.New(e.store(), mutex.Config{Mode: mutex.Inbox, BusyDelay: -1, Tables: mutex.Tables{Mutex: "x; DROP TABLE y"}})
	if !errors.Is(err, longshore.CodeConfig) {
		t.Fatal(err)
	}
	for _, part := range []string{"BusyDelay", "Consumer", "Retention", "Tables.Mutex"} {
		if !contains(err, part) {
			t.Errorf("%q is not named: %v", part, err)
		}
	}
}
