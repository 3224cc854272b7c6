package mutex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// endTimeout is for what has to be said to the database after the end.
const endTimeout = 5 * time.Second

type sqlTx struct {
	conn    *sql.Conn
	tx      *sql.Tx
	dialect Dialect
	manual  bool // autocommit is off on the connection
	end     context.CancelFunc
	closed  bool
	lost    error // why the session had ended before the rollback
}

type txKey struct{}

// TxFrom returns the transaction in which the handler runs. The handler must not end
// it. Error: [longshore.CodeState] if no mutex middleware is around the handler, or
// one whose store keeps another kind of transaction (mutexpgx has its own TxFrom).
func TxFrom(ctx context.Context) (*sql.Tx, error) {
	if tx, ok := ctx.Value(txKey{}).(*sql.Tx); ok {
		return tx, nil
	}
	return nil, &longshore.Error{Code: longshore.CodeState, Op: "mutex.TxFrom", Err: errors.New("no *sql.Tx in the context"),
		Hint: "put a mutex made with mutex.SQL into container.Config.Middleware and use the handler's own context"}
}

func (t *sqlTx) Put(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, t.tx)
}

func (t *sqlTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *sqlTx) Query(ctx context.Context, each func(scan func(dest ...any) error) error, query string, args ...any) (err error) {
	rows, err := t.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Commit ends the transaction and gives the connection back.
func (t *sqlTx) Commit(ctx context.Context) error {
	if t.closed {
		return errEndedByHandler
	}
	defer t.free(ctx)
	stop := context.AfterFunc(ctx, t.end)
	defer stop()
	if t.dialect == MySQL {
		if err := t.commitMySQL(ctx); err != nil {
			_ = t.tx.Rollback() // the connection cannot be given back before database/sql has its end
			return err
		}
	}
	return t.outcome(ctx, t.tx.Commit())
}

// commitMySQL commits by a statement that can be given up: Commit of go-sql-driver
// obeys no context. What follows it finds nothing left to commit.
func (t *sqlTx) commitMySQL(ctx context.Context) error {
	if _, err := t.tx.ExecContext(ctx, "RELEASE SAVEPOINT longshore"); err != nil {
		if Classify(t.dialect, err) == ClassAborted {
			return errNotOurs
		}
		return t.outcome(ctx, err)
	}
	_, err := t.tx.ExecContext(ctx, "COMMIT")
	if err != nil {
		return t.outcome(ctx, err)
	}
	return nil
}

// outcome says what an error of a commit means.
func (t *sqlTx) outcome(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone):
		return errEndedByHandler
	}
	switch Classify(t.dialect, err) {
	case ClassRolledBack, ClassAborted, ClassDuplicate: // the last by a deferred constraint
		return fmt.Errorf("%w: %w", ErrRolledBack, err)
	case ClassLost:
		return err
	case ClassOther, ClassBusy, ClassReadOnly, ClassSchema, ClassExhausted, ClassRefused:
	}
	// The answer has come if the session still works: then it was a refusal. A driver
	// tells so without a code when a hidden error had ended the transaction before.
	if t.dialect == Postgres && ctx.Err() == nil && t.conn.PingContext(ctx) == nil {
		return fmt.Errorf("%w: %w", ErrRolledBack, err)
	}
	return err
}

// Rollback ends the transaction if that has not happened yet.
func (t *sqlTx) Rollback(ctx context.Context) error {
	if t.closed {
		return nil
	}
	defer t.free(ctx)
	if t.tx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, t.end)
	defer stop()
	gone := t.gone()
	if t.dialect == MySQL { // as in commitMySQL
		_, err := t.tx.ExecContext(ctx, "ROLLBACK")
		gone = gone || Classify(t.dialect, err) == ClassLost
	}
	err := t.tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		err = nil
	}
	t.lost = t.ended(gone, err)
	return err
}

// ended is why the session had ended before a rollback; nil: it had not. On a closed
// session go-sql-driver answers a rollback with the error that closed it.
func (t *sqlTx) ended(gone bool, err error) error {
	switch {
	case err != nil && (t.dialect == Postgres || t.dialect == MySQL || Classify(t.dialect, err) == ClassLost):
		return err // these two refuse no rollback that they receive
	case gone:
		return errSessionLost
	}
	return nil
}

// Lost is part of [Session].
func (t *sqlTx) Lost() error { return t.lost }

// free gives the connection back to the pool as it was, or not at all.
func (t *sqlTx) free(ctx context.Context) {
	t.closed = true
	if t.manual {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if _, err := t.conn.ExecContext(ctx, "SET autocommit=1"); err != nil {
			discard(t.conn)
		}
	}
	_ = t.conn.Close()
	t.end()
}
