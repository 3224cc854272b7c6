package mutexpgx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

const endTimeout = 5 * time.Second

// tx is the mutex's side of a transaction.
type tx struct {
	life   context.Context //nolint:containedctx // of the transaction, not of a call
	conn   *pgxpool.Conn
	closed bool

	ended error // why the session had ended before the rollback

	mu    sync.Mutex
	lost  func(error)
	cause error // of the session's end, as the handler's first failed statement saw it
}

func newTx(life context.Context, conn *pgxpool.Conn) *tx { return &tx{life: life, conn: conn} }

func (t *tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := t.conn.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (t *tx) Query(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := t.conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	return read(rows, each)
}

// Commit gives the connection back.
func (t *tx) Commit(ctx context.Context) error {
	if t.closed {
		return errors.New("the transaction has ended already")
	}
	defer t.free()
	tag, err := t.conn.Exec(ctx, "commit")
	switch {
	case err == nil && tag.String() == "ROLLBACK": // an error was hidden before
		return fmt.Errorf("%w: %w", mutex.ErrRolledBack, pgx.ErrTxCommitRollback)
	case err != nil && !t.conn.Conn().IsClosed(): // the answer has come: a refusal
		return fmt.Errorf("%w: %w", mutex.ErrRolledBack, err)
	}
	return err
}

func (t *tx) Rollback(ctx context.Context) error {
	if t.closed {
		return nil
	}
	defer t.free()
	if t.conn.Conn().IsClosed() {
		t.ended = t.seen()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, err := t.conn.Exec(ctx, "rollback")
	if t.conn.Conn().IsClosed() {
		t.ended = errors.Join(t.seen(), err)
	}
	return err
}

// Lost is part of mutex.Session.
func (t *tx) Lost() error { return t.ended }

// seen is why the session has ended, as far as a statement of the handler told.
func (t *tx) seen() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		return pgconn.ErrConnClosed
	}
	return t.cause
}

// free gives the connection back; the pool closes one that is not idle.
func (t *tx) free() {
	t.closed = true
	t.conn.Release()
}

func (t *tx) Put(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, &handlerTx{t: t})
}

// Watch is notified by the handler's own statements.
func (t *tx) Watch(lost func(error)) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = lost
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lost = nil
	}
}

// saw looks at the error of a statement of the handler.
func (t *tx) saw(err error) {
	if err == nil || !t.conn.Conn().IsClosed() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = err
	}
	if t.lost != nil {
		t.lost(&longshore.Error{Code: longshore.CodeConnLost, Op: "transaction of the mutex", Err: err})
		t.lost = nil
	}
}
