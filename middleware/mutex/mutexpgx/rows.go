package mutexpgx

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows, row and results report errors that come while an answer is read: a session
// ends there as well as in a call.

type rows struct {
	pgx.Rows

	t *tx
}

func (r *rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.t.saw(r.Rows.Err())
	}
	return more
}

type row struct {
	pgx.Row

	t *tx
}

func (r *row) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	r.t.saw(err)
	return err
}

type results struct {
	pgx.BatchResults

	t *tx
}

func (r *results) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	r.t.saw(err)
	return tag, err
}

func (r *results) Query() (pgx.Rows, error) {
	got, err := r.BatchResults.Query()
	r.t.saw(err)
	return &rows{Rows: got, t: r.t}, err
}

func (r *results) QueryRow() pgx.Row { return &row{Row: r.BatchResults.QueryRow(), t: r.t} }

func (r *results) Close() error {
	err := r.BatchResults.Close()
	r.t.saw(err)
	return err
}
