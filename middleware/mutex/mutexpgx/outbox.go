package mutexpgx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

// Outbox is a [mutex.Outbox] for pgx transactions. It has all of its methods, with
// InTx and Add as pgx users need them.
type Outbox struct{ *mutex.Outbox }

// NewOutbox is [mutex.NewOutbox] on a pgx pool.
func NewOutbox(pool *pgxpool.Pool, p transport.Publisher, cfg mutex.OutboxConfig) (*Outbox, error) {
	o, err := mutex.NewOutbox(Pool(pool), p, cfg)
	if err != nil {
		return nil, err
	}
	return &Outbox{o}, nil
}

// InTx is [mutex.Outbox.InTx].
func (o *Outbox) InTx(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return o.Within(ctx, func(ctx context.Context) error {
		tx, err := TxFrom(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

// Add is [mutex.Outbox.Add].
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, dest string, msgs ...*longshore.Message) error {
	return o.Outbox.Add(ctx, Execer(tx), dest, msgs...)
}

// Execer makes a [mutex.Execer] of a pgx transaction, connection or pool.
func Execer(tx interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
}) mutex.Execer {
	e := execer{exec: tx.Exec}
	if q, ok := tx.(interface {
		QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	}); ok {
		e.query = q.QueryRow
	}
	return e
}

type execer struct {
	exec  func(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	query func(ctx context.Context, query string, args ...any) pgx.Row // nil: it cannot
}

func (e execer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := e.exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

// QueryValue reads one value, for [mutex.SequenceID].
func (e execer) QueryValue(ctx context.Context, query string) (value string, err error) {
	if e.query == nil {
		return "", errors.New("it executes statements only and cannot query")
	}
	err = e.query(ctx, query).Scan(&value)
	return value, err
}

// Send is [mutex.Outbox.Send].
func (o *Outbox) Send(ctx context.Context, tx pgx.Tx, dest string, m *longshore.Message) (id string, err error) {
	return o.Outbox.Send(ctx, Execer(tx), dest, m)
}
