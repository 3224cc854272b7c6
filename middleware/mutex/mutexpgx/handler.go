package mutexpgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore-go/longshore"
)

// handlerTx is the handler's side: all that a pgx.Tx can but end itself.
type handlerTx struct{ t *tx }

func refuse(what string) error {
	return &longshore.Error{Code: longshore.CodeState, Op: what + " in a handler", Err: errors.New("the transaction is the mutex's"),
		Hint: "return nil to commit, an error to roll back; Begin gives a part that can be rolled back alone"}
}

func (h *handlerTx) Commit(context.Context) error   { return refuse("commit") }
func (h *handlerTx) Rollback(context.Context) error { return refuse("rollback") }

// part is a transaction of pgx on the running one: it only lends us pgx's savepoints
// and large objects, and is never ended.
func (h *handlerTx) part(ctx context.Context) (pgx.Tx, error) {
	part, err := h.t.conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: "select 1"})
	h.t.saw(err)
	return part, err
}

// Begin makes a savepoint.
func (h *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	part, err := h.part(ctx)
	if err != nil {
		return nil, err
	}
	return part.Begin(ctx)
}

// LargeObjects returns the large objects of the transaction.
func (h *handlerTx) LargeObjects() pgx.LargeObjects {
	part, err := h.part(h.t.life)
	if err != nil {
		return pgx.LargeObjects{}
	}
	return part.LargeObjects()
}

func (h *handlerTx) Conn() *pgx.Conn { return h.t.conn.Conn() }

func (h *handlerTx) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	tag, err := h.t.conn.Exec(ctx, query, args...)
	h.t.saw(err)
	return tag, err
}

func (h *handlerTx) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	got, err := h.t.conn.Query(ctx, query, args...)
	h.t.saw(err)
	return &rows{Rows: got, t: h.t}, err
}

func (h *handlerTx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	return &row{Row: h.t.conn.QueryRow(ctx, query, args...), t: h.t}
}

func (h *handlerTx) Prepare(ctx context.Context, name, query string) (*pgconn.StatementDescription, error) {
	d, err := h.t.conn.Conn().Prepare(ctx, name, query)
	h.t.saw(err)
	return d, err
}

func (h *handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	n, err := h.t.conn.CopyFrom(ctx, table, columns, src)
	h.t.saw(err)
	return n, err
}

func (h *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return &results{BatchResults: h.t.conn.SendBatch(ctx, b), t: h.t}
}
