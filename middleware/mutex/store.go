package mutex

import (
	"context"
)

// Store is where the tables are. [SQL] makes one of a *sql.DB, mutexpgx.Pool of a
// pgx pool. One of your own lets handlers find another kind of transaction.
type Store interface {
	// Begin starts a transaction on one connection, READ COMMITTED where the driver
	// can be asked for it. ctx is the transaction's life: when it ends, so does the
	// connection, in the middle of whatever it does.
	Begin(ctx context.Context) (Tx, error)
	Dialect() Dialect
	// MaxConns is the size of the pool; 0 = no limit.
	MaxConns() int
}

// Tx is a transaction. It is used by one goroutine at a time.
type Tx interface {
	// Exec returns the number of rows that were changed.
	Exec(ctx context.Context, query string, args ...any) (rows int64, err error)
	// Query calls each for every row. An error in the middle of the rows is an
	// error of Query: it must never look like the end.
	Query(ctx context.Context, each func(scan func(dest ...any) error) error, query string, args ...any) error
	// Commit returns nil if the database has confirmed, an error around
	// [ErrRolledBack] if the transaction is gone for certain, and any other if the
	// outcome is unknown. It returns when ctx ends.
	Commit(ctx context.Context) error
	// Rollback gives the connection back. It may be called after Commit and more
	// than once, and then does nothing.
	Rollback(ctx context.Context) error
	// Put returns a context in which the handler finds the transaction.
	Put(ctx context.Context) context.Context
}

// Optional on a Store.
type (
	// QueryBeginner starts a transaction and runs its first query in one round trip.
	QueryBeginner interface {
		BeginQuery(ctx context.Context, each func(scan func(dest ...any) error) error, query string, args ...any) (Tx, error)
	}

	// Guard is a Tx that notices when its session is gone. lost is called at most
	// once; not after stop has returned.
	Guard interface {
		Watch(lost func(cause error)) (stop func())
	}

	// Session is a Tx that says, after Rollback, whether its session had ended before
	// the rollback was answered, and why: nil if it had not, an error around that of
	// the context if a context ended one of its statements. Without it the error of
	// Rollback is judged by its class.
	Session interface {
		Lost() error
	}
)
