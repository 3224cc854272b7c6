package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// existing makes a mutex table as a service of many years has it: a numeric column without
// an index that is unique, and a time that may be NULL.
func (e *env) existing() mutex.Tables {
	e.t.Helper()
	tables := e.tables
	tables.Mutex, tables.ID, tables.CreatedAt = e.effects+"_old", "MUTEX", "CREATED_AT"
	e.exec("CREATE TABLE " + tables.Mutex + " (MUTEX numeric(18) NOT NULL, CREATED_AT timestamp NULL)")
	e.t.Cleanup(func() { _, _ = e.db.ExecContext(context.Background(), "DROP TABLE "+tables.Mutex) })
	return tables
}

// An existing table is used as it is, by both ways to delete a row: a message's row is
// locked, a second copy is busy meanwhile and finds nothing afterwards, and rows with the
// same id are one message, which is reported.
func TestExistingTableWithoutUniqueIndex(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		tables := e.existing()
		strict := e.mutex(mutex.Config{Tables: tables})
		if err := strict.Check(t.Context(), longshore.Facts{}); !errors.Is(err, longshore.CodeMismatch) {
			t.Errorf("without the setting: %v", err)
		}
		if e.dialect == mutex.MySQL {
			loose := e.mutex(mutex.Config{Tables: tables, NoUniqueIndex: true})
			if err := loose.Check(t.Context(), longshore.Facts{}); !errors.Is(err, longshore.CodeMismatch) {
				t.Errorf("MySQL without any index: %v", err)
			}
			e.exec("CREATE INDEX " + e.effects + "_i ON " + tables.Mutex + " (MUTEX)")
		}
		for _, del := range []mutex.Delete{mutex.DeleteFirst, mutex.DeleteLast} {
			e.exec("INSERT INTO " + tables.Mutex + " (MUTEX) VALUES (7), (8), (9), (9)")
			core, logs := observer.New(zap.WarnLevel)
			m := e.mutex(mutex.Config{Tables: tables, NoUniqueIndex: true, Delete: del, Logger: zap.New(core), BusyDelay: time.Millisecond})
			if err := m.Check(t.Context(), longshore.Facts{}); err != nil {
				t.Fatal(err)
			}
			entered, leave := make(chan struct{}), make(chan struct{})
			var first sync.WaitGroup
			first.Go(func() {
				slow := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					close(entered)
					<-leave
					return e.write(ctx, d.ID)
				})
				is(t, run(t, m, slow, delivery("7")), longshore.VerdictAck)
			})
			<-entered
			is(t, run(t, m, e.effect(nil), delivery("7")), longshore.VerdictRelease) // held
			is(t, run(t, m, e.effect(nil), delivery("8")), longshore.VerdictAck)     // others go on
			close(leave)
			first.Wait()
			is(t, run(t, m, e.effect(nil), delivery("7")), longshore.VerdictAck) // done before
			is(t, run(t, m, e.effect(nil), delivery("9")), longshore.VerdictAck)
			if n := e.count("SELECT count(*) FROM " + tables.Mutex); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			if s := m.Stats(); s.Duplicates != 1 || s.Acquired != 3 || s.Held != 1 || s.Absent != 1 || logs.FilterMessage("mutex rows with the same id").Len() != 1 {
				t.Errorf("%+v, %v", s, logs.All())
			}
		}
		if n := e.effectCount(); n != 6 {
			t.Errorf("%d effects of 6", n)
		}
	})
}

// Two consumers that meet at two rows of one id never each get one of them.
func TestRowsWithTheSameIDAreTakenTogether(t *testing.T) {
	e := open(t, mutex.Postgres)
	tables := e.existing()
	for _, del := range []mutex.Delete{mutex.DeleteFirst, mutex.DeleteLast} {
		m := e.mutex(mutex.Config{Tables: tables, NoUniqueIndex: true, Delete: del, BusyDelay: time.Millisecond})
		before := e.effectCount()
		const ids = 40
		for range ids {
			e.exec("INSERT INTO " + tables.Mutex + " (MUTEX) VALUES (7), (7)")
			var both sync.WaitGroup
			for range 3 {
				both.Go(func() {
					for verdict := longshore.VerdictRelease; verdict == longshore.VerdictRelease; {
						verdict, _ = longshore.VerdictOf(run(t, m, e.effect(nil), delivery("7")))
					}
				})
			}
			both.Wait()
		}
		if n := e.effectCount() - before; n != ids {
			t.Errorf("%d effects of %d", n, ids)
		}
	}
}

// The time is written where the table has a column for it, and a row without one is found.
func TestTimesOfAnExistingTable(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		tables := e.existing()
		o, err := mutex.NewOutbox(e.store(), nil, mutex.OutboxConfig{Tables: tables, NewID: mutex.NumericID, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		var id string
		err = o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) (err error) {
			id, err = o.Send(ctx, tx, "orders", &longshore.Message{Body: []byte("x")})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := e.count("SELECT count(*) FROM " + tables.Mutex + " WHERE CREATED_AT IS NOT NULL AND MUTEX = " + id); n != 1 {
			t.Errorf("%d rows of %s have their time", n, id)
		}
		e.exec("INSERT INTO " + tables.Mutex + " (MUTEX, CREATED_AT) VALUES (5, NULL)")
		m := e.mutex(mutex.Config{Tables: tables, NoUniqueIndex: true})
		for name, rows := range map[string]func() ([]mutex.Row, error){
			"older than an hour": func() ([]mutex.Row, error) { return m.Rows(t.Context(), time.Hour, 10) },
			"by its id":          func() ([]mutex.Row, error) { return m.Rows(t.Context(), 0, 10, "5") },
		} {
			if got, err := rows(); err != nil || len(got) != 1 || got[0].ID != "5" || got[0].Age != 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

// The delete after a handler that has ended the transaction itself fails, and the error says
// which row stays and what the handler must leave alone.
func TestDeleteLastAfterTheHandlersOwnCommit(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		tables := e.existing()
		if e.dialect == mutex.MySQL {
			e.exec("CREATE INDEX " + e.effects + "_i ON " + tables.Mutex + " (MUTEX)")
		}
		e.exec("INSERT INTO " + tables.Mutex + " (MUTEX) VALUES (7)")
		m := e.mutex(mutex.Config{Tables: tables, NoUniqueIndex: true, Delete: mutex.DeleteLast})
		err := run(t, m, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
			tx, err := mutex.TxFrom(ctx)
			if err != nil {
				return err
			}
			return tx.Commit()
		}), delivery("7"))
		is(t, err, longshore.VerdictNone) // counted: uncounted, its effects would go on for ever
		if text := err.Error(); !strings.Contains(text, `mutex row "7"`) || !strings.Contains(text, "leave commit") {
			t.Error(text)
		}
	})
}

// What a message without a row becomes is a setting.
func TestAbsentRow(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		for absent, want := range map[mutex.Absent]longshore.Verdict{mutex.AckAbsent: longshore.VerdictAck,
			mutex.RejectAbsent: longshore.VerdictReject, mutex.HandleAbsent: longshore.VerdictAck} {
			before := e.effectCount()
			m := e.mutex(mutex.Config{Absent: absent})
			is(t, run(t, m, e.effect(nil), delivery("none")), want)
			handled := 0
			if absent == mutex.HandleAbsent {
				handled = 1
			}
			if n := e.effectCount() - before; n != handled || m.Stats().Absent != 1 {
				t.Errorf("absent %v: %d effects, %+v", absent, n, m.Stats())
			}
		}
	})
}

func TestSQLiteRefusesDeleteLastAndSequences(t *testing.T) {
	e := open(t, mutex.SQLite)
	if _, err := mutex.New(e.store(), mutex.Config{Delete: mutex.DeleteLast}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("DeleteLast: %v", err)
	}
	if _, err := mutex.SequenceID(mutex.SQLite, "ids"); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("SequenceID: %v", err)
	}
	if _, err := mutex.SequenceID(mutex.Postgres, "ids'); DROP TABLE x; --"); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("a name that is none: %v", err)
	}
	if _, err := mutex.DDL(mutex.SQLite, mutex.Tables{Sequence: "ids"}); err == nil {
		t.Error("DDL with a sequence was not refused")
	}
}

// Ids come from a sequence that DDL has created, in the caller's transaction, and DropDDL
// removes all that DDL creates.
func TestIDsFromASequence(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		p := e.effects + "_s_"
		tables := mutex.Tables{Mutex: p + "mutex", Outbox: p + "outbox", Shards: p + "relay", Inbox: p + "inbox", Sequence: p + "ids"}
		script := func(text string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			for _, stmt := range strings.Split(text, ";\n") {
				if strings.TrimSpace(stmt) != "" {
					e.exec(stmt)
				}
			}
		}
		if e.isMySQL() {
			return // MariaDB has sequences, MySQL has none
		}
		script(mutex.DDL(e.dialect, tables))
		next, err := mutex.SequenceID(e.dialect, tables.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		o, err := mutex.NewOutbox(e.store(), nil, mutex.OutboxConfig{Tables: tables, NewID: next, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1", "2"} {
			err = o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				msg := &longshore.Message{Body: []byte("x")}
				id, err := o.Send(ctx, tx, "orders", msg)
				if err == nil && (id != want || msg.Headers.String(mutex.HeaderMutex) != want) {
					t.Errorf("id %q, header %q, want %s", id, msg.Headers.String(mutex.HeaderMutex), want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		script(mutex.DropDDL(e.dialect, tables))
		script(mutex.DDL(e.dialect, tables)) // nothing of it was left
		script(mutex.DropDDL(e.dialect, tables))
	})
}
