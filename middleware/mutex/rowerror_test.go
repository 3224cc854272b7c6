package mutex_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// F-H02: an error that only appears while rows are read is not "no row". Drivers report
// a lock at the query or at the first row, depending on the protocol that they use.
func TestErrorWhileReadingRowsIsNotTheAbsenceOfARow(t *testing.T) {
	for _, c := range []struct {
		dialect mutex.Dialect
		err     error
		held    int64
	}{
		{mutex.Postgres, pgError("55P03"), 1},
		{mutex.Postgres, pgError("57P01"), 0},
		{mutex.MySQL, &myError{Number: 1205}, 1},
		{mutex.MySQL, &myError{Number: 3572}, 1},
		{mutex.MySQL, driver.ErrBadConn, 0},
	} {
		db := sql.OpenDB(lateErrors{c.err})
		m, err := mutex.New(mutex.SQL(db, c.dialect), mutex.Config{})
		if err != nil {
			t.Fatal(err)
		}
		never := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { t.Error("ran"); return nil })
		is(t, run(t, m, never, delivery("a")), longshore.VerdictRelease)
		if m.Stats().Held != c.held || m.Stats().Absent != 0 {
			t.Errorf("%v: %+v", c.err, m.Stats())
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// lateErrors is a driver of which each query begins well and fails at its first row.
type lateErrors struct{ err error }

func (l lateErrors) Connect(context.Context) (driver.Conn, error) { return lateConn(l), nil }
func (l lateErrors) Driver() driver.Driver                        { return nil }

type lateConn lateErrors

func (c lateConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (c lateConn) Close() error                        { return nil }
func (c lateConn) Begin() (driver.Tx, error)           { return c, nil }
func (c lateConn) Commit() error                       { return nil }
func (c lateConn) Rollback() error                     { return nil }

func (c lateConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c lateConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), nil
}

func (c lateConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return lateRows(c), nil
}

type lateRows lateErrors

func (r lateRows) Columns() []string         { return []string{"a", "b"} }
func (r lateRows) Close() error              { return nil }
func (r lateRows) Next([]driver.Value) error { return r.err }

// F-H02 on SQLite, where a lock is on the whole file: while another session writes, a
// delivery comes back uncounted and within the timeout.
func TestSQLiteFileLockedElsewhereIsBusy(t *testing.T) {
	e := open(t, mutex.SQLite)
	e.row("a")
	writer, err := e.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := e.mutex(mutex.Config{LockTimeout: 100 * time.Millisecond})
	never := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { t.Error("ran"); return nil })
	is(t, run(t, m, never, delivery("a")), longshore.VerdictRelease)
	if err := writer.Rollback(); err != nil {
		t.Fatal(err)
	}
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
	if e.effectCount() != 1 || e.rows() != 0 {
		t.Errorf("%d effects, %d rows", e.effectCount(), e.rows())
	}
}
