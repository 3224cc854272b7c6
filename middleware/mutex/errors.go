package mutex

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// ErrRolledBack is in the error of a commit whose transaction is gone for
// certain: a statement had failed in it and the handler did not say so, or the
// database rolled it back. Nothing of it has happened.
var ErrRolledBack = errors.New("longshore: the transaction was rolled back")

var (
	errEndedByHandler = errors.New("the handler ended the transaction itself")
	errNotOurs        = fmt.Errorf("%w: the database ended it in the middle and the handler went on", ErrRolledBack)
	errWaitedTooLong  = errors.New("no connection and lock in LockTimeout")
	errHeldElsewhere  = errors.New("the row is held elsewhere")
	errNoRow          = errors.New("no row")
	errNotYetVisible  = errors.New("no mutex row: done, or not yet visible")
	errSessionLost    = &longshore.Error{Code: longshore.CodeConnLost, Op: "transaction of the mutex", Err: errors.New("the database ended the session")}
)

func checkDialect(d Dialect) error {
	if d.String() == "" {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "mutex", Err: errors.New("no dialect"),
			Hint: "use mutex.Postgres, MySQL or SQLite"}
	}
	return nil
}
