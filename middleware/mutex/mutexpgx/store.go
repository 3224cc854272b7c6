package mutexpgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

type store struct{ pool *pgxpool.Pool }

// Pool is a [mutex.Store] on a pgx pool.
func Pool(pool *pgxpool.Pool) mutex.Store { return &store{pool: pool} }

func (s *store) Dialect() mutex.Dialect { return mutex.Postgres }
func (s *store) MaxConns() int          { return int(s.pool.Config().MaxConns) }

const begin = "begin isolation level read committed"

func (s *store) Begin(ctx context.Context) (mutex.Tx, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		conn.Release() // pgx closes a connection that is not idle
		return nil, err
	}
	return newTx(ctx, conn), nil
}

// BeginQuery sends both in one batch.
func (s *store) BeginQuery(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) (mutex.Tx, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := newTx(ctx, conn)
	b := &pgx.Batch{}
	b.Queue(begin)
	b.Queue(query, args...)
	res := conn.SendBatch(ctx, b)
	_, err = res.Exec()
	if err == nil {
		var rows pgx.Rows
		if rows, err = res.Query(); err == nil {
			err = read(rows, each)
		}
	}
	if err = errors.Join(err, res.Close()); err != nil {
		_ = t.Rollback(ctx)
		return nil, err
	}
	return t, nil
}

func read(rows pgx.Rows, each func(scan func(...any) error) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type txKey struct{}

// TxFrom returns the transaction in which the handler runs. Error:
// [longshore.CodeState] if no mutex on [Pool] is around the handler.
func TxFrom(ctx context.Context) (pgx.Tx, error) {
	if tx, ok := ctx.Value(txKey{}).(*handlerTx); ok {
		return tx, nil
	}
	return nil, &longshore.Error{Code: longshore.CodeState, Op: "mutexpgx.TxFrom", Err: errors.New("no pgx.Tx in the context"),
		Hint: "put a mutex made with mutexpgx.Pool into container.Config.Middleware and use the handler's own context"}
}
