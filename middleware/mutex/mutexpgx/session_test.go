package mutexpgx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/middleware/mutex/mutexpgx"
)

// F-N10: whatever statement of pgx meets the loss of the session, it is no failed attempt.
func TestLossOfTheSessionIsNeverTheHandlersFailure(t *testing.T) {
	t.Parallel()
	e := open(t)
	m := e.mutex(mutex.Config{})
	insert := "INSERT INTO " + e.effects + " (id) VALUES ('x')"
	for name, do := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"exec": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, insert); return err },
		"query": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT id FROM "+e.effects)
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		},
		"query row": func(ctx context.Context, tx pgx.Tx) error {
			var n int
			return tx.QueryRow(ctx, "SELECT count(*) FROM "+e.effects).Scan(&n)
		},
		"prepare": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Prepare(ctx, "p", insert); return err },
		"copy": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{e.effects}, []string{"id"}, pgx.CopyFromRows([][]any{{"x"}}))
			return err
		},
		"batch": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(insert)
			return tx.SendBatch(ctx, b).Close()
		},
		"savepoint": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Begin(ctx); return err },
		"second after a hidden first": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, insert)
			_, err := tx.Exec(ctx, insert)
			return err
		},
		"an error of its own": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, insert); err != nil {
				return errors.New("could not be saved") // without %w
			}
			return nil
		},
		"a retry": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert)
			return longshore.Retry(err, 0)
		},
	} {
		e.exec("INSERT INTO " + e.tables.Mutex + " (id) VALUES ('" + name + "')")
		got := e.run(m, name, func(ctx context.Context) error {
			tx, err := mutexpgx.TxFrom(ctx)
			if err != nil {
				return longshore.Reject(err)
			}
			var pid int
			if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
				return longshore.Reject(err)
			}
			if _, err := e.pool.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err != nil {
				return longshore.Reject(err)
			}
			if err = do(ctx, tx); err == nil {
				t.Errorf("%s: a statement in a dead session succeeded", name)
			}
			return err
		})
		if got != longshore.VerdictRelease {
			t.Errorf("%s: verdict %q, want release", name, got)
		}
	}
}

// F-N10: a statement that a time limit of the handler ends is the handler's failure,
// also where the handler reports it in words of its own.
func TestSlowStatementIsTheHandlersFailure(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.exec("INSERT INTO " + e.tables.Mutex + " (id) VALUES ('a'), ('b')")
	// Each has a row of its own: the server may hold the first one's lock for a moment after
	// the driver has closed its session.
	for id, own := range map[string]bool{"a": false, "b": true} {
		e.want("slow", e.run(e.mutex(mutex.Config{}), id, func(ctx context.Context) error {
			tx, err := mutexpgx.TxFrom(ctx)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if _, err = tx.Exec(ctx, "SELECT pg_sleep(30)"); own {
				return errors.New("too slow")
			}
			return err
		}), longshore.VerdictNone, 2, 0)
	}
}
