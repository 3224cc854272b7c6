package mutex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/transport"
)

// Outbox publishes messages if, and only if, the transaction that made them is
// committed. It is safe for concurrent use.
type Outbox struct {
	store Store
	pub   transport.Publisher
	cfg   OutboxConfig
	sql   outboxSQL
	relay *Relay

	suspects suspects
	left     logs.Alarm // publishing after the commit fails: rows are left to the relay
}

// Execer runs a statement in a transaction: *sql.Tx, *sqlx.Tx, *sql.Conn, and a pgx.Tx
// by mutexpgx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// NewOutbox checks the configuration and returns an outbox. It does no I/O. p is where
// messages go; nil leaves publishing to a relay elsewhere. Errors:
// [longshore.CodeConfig], with all that is wrong.
func NewOutbox(s Store, p transport.Publisher, cfg OutboxConfig) (*Outbox, error) {
	cfg = cfg.defaults()
	err := cfg.check()
	if s == nil {
		err = errors.Join(errors.New("no store"), err)
	} else {
		err = errors.Join(checkDialect(s.Dialect()), err)
	}
	if err != nil {
		return nil, configError("mutex.NewOutbox", err)
	}
	o := &Outbox{store: s, pub: p, cfg: cfg, sql: outboxSQLFor(s.Dialect(), cfg.Tables, cfg.PassParked)}
	o.relay = newRelay(o)
	return o, nil
}

// InTx begins a transaction, runs fn, commits and then publishes what fn has added: so
// that publishing before the commit cannot be written. An error of fn, or a panic,
// rolls back and nothing is published. nil means committed; what could not be
// published yet is left to the relay.
//
// After an error of the commit the outcome is unknown, unless it wraps
// [ErrRolledBack]: nothing is published here, and the relay publishes if the
// transaction was committed after all. The store must keep *sql.Tx transactions.
func (o *Outbox) InTx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return o.Within(ctx, func(ctx context.Context) error {
		tx, err := TxFrom(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

// Within is InTx for stores with transactions of another kind: fn finds it in its
// context.
func (o *Outbox) Within(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	unlink := context.AfterFunc(ctx, end)
	timer := time.AfterFunc(defaultLockTimeout, end)
	tx, err := o.store.Begin(life)
	if inTime, wanted := timer.Stop(), unlink(); err != nil || !inTime || !wanted {
		if tx != nil {
			_ = tx.Rollback(life)
		}
		return &longshore.Error{Code: longshore.CodeConnLost, Op: "begin a transaction for the outbox", Err: errors.Join(err, ctx.Err()),
			Hint: "the database cannot be reached, or its pool is exhausted"}
	}
	defer func() { _ = tx.Rollback(life) }()
	after := &afterCommit{}
	if err := fn(tx.Put(context.WithValue(ctx, afterKey{}, after))); err != nil {
		return err
	}
	commit, cancel := context.WithTimeout(life, defaultCommitTimeout)
	defer cancel()
	if err := tx.Commit(commit); err != nil {
		return &longshore.Error{Code: longshore.CodeConnLost, Op: "commit with an outbox", Err: err,
			Hint: "unless it was rolled back the outcome is unknown: look before doing it again"}
	}
	after.run(life)
	return nil
}

// Add stores messages for dest in the caller's transaction. They get a mutex id in
// their header, and as their ID if they have none, and their ID in the header
// longshore-id, by which inboxes tell copies: the message is changed for that.
// Within [Outbox.InTx] and in a handler behind a [Mutex], with the context given
// there, they are published once the transaction is committed; in a transaction of
// your own call [Outbox.Flush] after the commit or leave them to the relay.
//
// Messages with a key keep the order in which they were added, if whoever adds
// messages of a key does so one after the other (by a lock on the order, the account).
//
// Errors: [longshore.CodeConfig] or [longshore.CodeBadHeader] for what cannot be
// published, then nothing was stored; or the database's.
func (o *Outbox) Add(ctx context.Context, tx Execer, dest string, msgs ...*longshore.Message) error {
	_, err := o.add(ctx, tx, dest, msgs...)
	return err
}

func (o *Outbox) add(ctx context.Context, tx Execer, dest string, msgs ...*longshore.Message) ([]*record, error) {
	for _, m := range msgs {
		if err := storable(dest, m); err != nil {
			return nil, err
		}
	}
	records := make([]*record, 0, len(msgs))
	for _, m := range msgs {
		r, err := o.record(ctx, tx, dest, m)
		if err != nil {
			return nil, err
		}
		for _, s := range o.sql.insert(o.cfg.NoMutex, r, o.due(r)) {
			if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
				return nil, fmt.Errorf("longshore: add to the outbox: %w", err)
			}
		}
		records = append(records, r)
	}
	if a := afterFrom(ctx); a != nil && len(records) > 0 {
		a.add(func(ctx context.Context) { o.publishNow(ctx, records) })
	}
	return records, nil
}

// Send is [Outbox.Add] for one message, and returns the id of its mutex row, which is
// also the id in the header.
func (o *Outbox) Send(ctx context.Context, tx Execer, dest string, m *longshore.Message) (id string, err error) {
	records, err := o.add(ctx, tx, dest, m)
	if err != nil {
		return "", err
	}
	return records[0].id, nil
}

func (o *Outbox) record(ctx context.Context, tx Execer, dest string, m *longshore.Message) (*record, error) {
	id, err := o.newID(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !o.cfg.NoMutex {
		m.Headers.Set(o.cfg.Header, id)
	}
	if m.ID == "" {
		m.ID = id
	}
	if !m.Headers.Has(longshore.HeaderID) { // what the relay publishes twice is one message
		m.Headers.Set(longshore.HeaderID, m.ID)
	}
	key, _ := keyText(m.Key).(string)
	return &record{id: id, dest: dest, key: key, shard: shardOf(m.Key, id), msg: m.Clone()}, nil
}

// due is what a new row says of when a relay may take it: 0 at once, below 0 so many
// milliseconds after a relay has first seen it. A time would be wrong: the row is seen
// when it is committed, and only the database knows when that is. Keyed rows are due at
// once: a later one must not be due before an earlier one.
func (o *Outbox) due(r *record) int64 {
	if r.key != "" || o.direct() == nil {
		return 0
	}
	return -o.cfg.Grace.Milliseconds()
}

// direct is the publisher for messages without a key, nil if the relay has them all.
func (o *Outbox) direct() transport.Publisher {
	if o.cfg.RelayOnly {
		return nil
	}
	return o.pub
}

// Relay returns the relay of this outbox: a component of a lifecycle.Manager, phase
// 200, or to be started and stopped by hand.
func (o *Outbox) Relay() *Relay { return o.relay }
