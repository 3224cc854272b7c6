package mutex

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"time"
)

// watchEvery is how soon after the statement that failed the handler's context ends.
const watchEvery = 50 * time.Millisecond

// Watch asks the driver, not the database, whether the session is at its end, so
// it costs no round trip and disturbs no statement. A driver learns of a lost session
// by the next statement.
func (t *sqlTx) Watch(lost func(error)) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if t.gone() {
				lost(errSessionLost)
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// gone waits while a statement runs.
func (t *sqlTx) gone() (gone bool) {
	err := t.conn.Raw(func(c any) error {
		gone = closedByDriver(c, t.dialect)
		return nil
	})
	return gone || errors.Is(err, driver.ErrBadConn)
}

// closedByDriver asks without I/O, in the ways that the drivers have.
func closedByDriver(c any, d Dialect) bool {
	switch d {
	case MySQL:
		// IsValid of go-sql-driver is false while rows are open. Exec of a statement with
		// one argument too many says ErrBadConn on a closed connection and else ErrSkip.
		if e, ok := c.(interface {
			Exec(query string, args []driver.Value) (driver.Result, error)
		}); ok {
			_, err := e.Exec("", []driver.Value{nil})
			return errors.Is(err, driver.ErrBadConn)
		}
	case Postgres:
		if v, ok := c.(driver.Validator); ok {
			return !v.IsValid()
		}
		return pgxClosed(reflect.ValueOf(c))
	case SQLite: // a file has no session
	}
	return false
}

// pgxClosed is c.Conn().IsClosed() without the import.
func pgxClosed(c reflect.Value) bool {
	conn := c.MethodByName("Conn")
	if !conn.IsValid() || conn.Type().NumIn() != 0 || conn.Type().NumOut() != 1 {
		return false
	}
	closed, ok := conn.Call(nil)[0].Interface().(interface{ IsClosed() bool })
	return ok && closed.IsClosed()
}
