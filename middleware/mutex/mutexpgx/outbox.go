package mutexpgx

import (
	"context"
	"database/sql"
	"database/sql/driver"

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
	return execer{tx.Exec}
}

type execer struct {
	exec func(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
}

func (e execer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := e.exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}
