package mutex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/logs"
)

// Outcome is what an attempt to take a row found.
type Outcome uint8

// The outcomes.
const (
	// Acquired: the row is ours until the transaction ends.
	Acquired Outcome = iota + 1
	// Held: another owner has it.
	Held
	// Gone: there is none; in the inbox: it is done.
	Gone
)

// claim is what a delivery has to take: the row of a mutex, a place in the inbox,
// or nothing.
type claim struct {
	id    string
	inbox bool
	none  bool
}

// statements are the texts for one dialect and its names.
type statements struct {
	dialect Dialect
	lock    string // one query with two counts on PostgreSQL, else a locking select
	last    bool   // the row is deleted after the handler
	delete  string
	seen    string // inbox: is it there
	insert  string // inbox; on PostgreSQL with two counts, as lock
	purge   string
}

func statementsFor(d Dialect, cfg *Config) statements {
	n := cfg.Tables.in(d)
	s := statements{dialect: d, last: cfg.Delete == DeleteLast, delete: fmt.Sprintf("DELETE FROM %s WHERE %s = %s", n.Mutex, n.ID, d.arg(1))}
	switch d {
	case Postgres:
		// One statement, and no error when the row is held: an error would end the
		// transaction and fill the server's log.
		s.lock = fmt.Sprintf(pgLock(cfg), n.Mutex, n.ID)
		s.insert = fmt.Sprintf(`WITH l AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended($1::text || '/' || $2::text, 0)) AS got),
i AS (INSERT INTO %s (consumer, id, at) SELECT $1::text, $2::text, %s FROM l WHERE got ON CONFLICT DO NOTHING RETURNING 1)
SELECT (SELECT count(*) FROM i), NOT (SELECT got FROM l)`, n.Inbox, d.now())
		s.purge = fmt.Sprintf("DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE consumer = $1 AND at < %[2]s - $2 ORDER BY at LIMIT $3))", n.Inbox, d.now())
	case MySQL:
		s.lock = fmt.Sprintf("SELECT 1 FROM %s WHERE %s = ? FOR UPDATE NOWAIT", n.Mutex, n.ID)
		s.seen = fmt.Sprintf("SELECT 1 FROM %s WHERE consumer = ? AND id = ? FOR UPDATE NOWAIT", n.Inbox)
		s.insert = fmt.Sprintf("INSERT INTO %s (consumer, id, at) VALUES (?, ?, %s)", n.Inbox, d.now())
		s.purge = fmt.Sprintf("DELETE FROM %s WHERE consumer = ? AND at < %s - ? ORDER BY at LIMIT ?", n.Inbox, d.now())
	case SQLite:
		s.insert = fmt.Sprintf("INSERT INTO %s (consumer, id, at) VALUES (?, ?, %s) ON CONFLICT DO NOTHING", n.Inbox, d.now())
		s.purge = fmt.Sprintf("DELETE FROM %[1]s WHERE rowid IN (SELECT rowid FROM %[1]s WHERE consumer = ? AND at < %[2]s - ? ORDER BY at LIMIT ?)", n.Inbox, d.now())
	}
	return s
}

// pgLock is the question on PostgreSQL: rows taken, and whether any are there.
func pgLock(cfg *Config) string {
	switch {
	case cfg.NoUniqueIndex && cfg.Delete == DeleteLast:
		return `WITH l AS (SELECT 1 FROM %[1]s WHERE %[2]s = $1 FOR UPDATE SKIP LOCKED), a AS (SELECT count(*) AS n FROM %[1]s WHERE %[2]s = $1)
SELECT CASE WHEN (SELECT count(*) FROM l) = a.n THEN a.n ELSE 0 END, a.n > 0 FROM a`
	case cfg.NoUniqueIndex:
		// Whoever does not get all rows of the id has got none of them: two sessions could
		// each lock one. By ctid, since a delete by id would wait for the other session.
		return `WITH l AS (SELECT ctid FROM %[1]s WHERE %[2]s = $1 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM %[1]s m USING l WHERE m.ctid = l.ctid RETURNING 1), a AS (SELECT count(*) AS n FROM %[1]s WHERE %[2]s = $1)
SELECT CASE WHEN (SELECT count(*) FROM d) = a.n THEN a.n ELSE 0 END, a.n > 0 FROM a`
	case cfg.Delete == DeleteLast:
		return `WITH l AS (SELECT 1 FROM %[1]s WHERE %[2]s = $1 FOR UPDATE SKIP LOCKED)
SELECT (SELECT count(*) FROM l), EXISTS (SELECT 1 FROM %[1]s WHERE %[2]s = $1)`
	}
	return `WITH l AS (SELECT %[2]s FROM %[1]s WHERE %[2]s = $1 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM %[1]s m USING l WHERE m.%[2]s = l.%[2]s RETURNING 1)
SELECT (SELECT count(*) FROM d), EXISTS (SELECT 1 FROM %[1]s WHERE %[2]s = $1)`
}

// begin starts a transaction and takes what the claim says. The transaction is open
// only if the outcome is Acquired.
func (m *Mutex) begin(ctx context.Context, c claim) (Tx, Outcome, error) {
	if q, ok := m.store.(QueryBeginner); ok && m.sql.dialect == Postgres && !c.none {
		var won, other counts
		query, args := m.question(c)
		tx, err := q.BeginQuery(ctx, scanCounts(&won, &other), query, args...)
		m.duplicates(c, int64(won))
		return m.began(ctx, tx, won.outcome(other), err)
	}
	tx, err := m.store.Begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	out, err := m.take(ctx, tx, c)
	return m.began(ctx, tx, out, err)
}

func (m *Mutex) began(ctx context.Context, tx Tx, out Outcome, err error) (Tx, Outcome, error) {
	if err == nil && out == Acquired {
		return tx, out, nil
	}
	if tx != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx))
	}
	if err == nil {
		return nil, out, nil
	}
	switch m.class(err) {
	case ClassBusy:
		return nil, Held, nil
	case ClassDuplicate: // of the inbox
		return nil, Gone, nil
	default:
		return nil, 0, err
	}
}

// take is the first statement of the transaction: with an older snapshot a row
// could be missing that is there.
func (m *Mutex) take(ctx context.Context, tx Tx, c claim) (Outcome, error) {
	switch {
	case c.none:
		return Acquired, nil
	case m.sql.dialect == Postgres:
		var won, other counts
		query, args := m.question(c)
		err := tx.Query(ctx, scanCounts(&won, &other), query, args...)
		m.duplicates(c, int64(won))
		return won.outcome(other), err
	case c.inbox:
		return m.takeInbox(ctx, tx, c.id)
	}
	if m.sql.lock != "" {
		found := int64(0)
		err := tx.Query(ctx, func(func(...any) error) error { found++; return nil }, m.sql.lock, c.id)
		if err != nil || found == 0 {
			return Gone, err
		}
		m.duplicates(c, found)
		if m.sql.last {
			return Acquired, nil
		}
	}
	// Without row locks (SQLite) this takes the lock on all.
	n, err := tx.Exec(ctx, m.sql.delete, c.id)
	if n == 0 {
		return Gone, err
	}
	return Acquired, err
}

func (m *Mutex) takeInbox(ctx context.Context, tx Tx, id string) (Outcome, error) {
	if m.sql.seen != "" { // a plain insert would wait for who is at it
		found := false
		err := tx.Query(ctx, func(func(...any) error) error { found = true; return nil }, m.sql.seen, m.cfg.Consumer, id)
		if err != nil || found {
			return Gone, err
		}
	}
	n, err := tx.Exec(ctx, m.sql.insert, m.cfg.Consumer, id)
	if n == 0 {
		return Gone, err
	}
	return Acquired, err
}

// duplicates reports rows that have the same id: a sequence that has begun again, or a
// producer that inserts twice. They are taken together, so the message is handled once.
func (m *Mutex) duplicates(c claim, rows int64) {
	if rows < 2 || c.inbox {
		return
	}
	m.counter.duplicates.Add(1)
	if stands, due := m.twice.Due(time.Now()); due {
		m.cfg.Logger.Warn("mutex rows with the same id", zap.String("mutex_id", c.id), zap.Int64("rows", rows),
			zap.String("help", "ids must be unique: look at the producer and its sequence"), logs.Repeated(stands))
	}
}

// question is the query on PostgreSQL that takes a row and reports the outcome in one statement.
func (m *Mutex) question(c claim) (string, []any) {
	if c.inbox {
		return m.sql.insert, []any{m.cfg.Consumer, c.id}
	}
	return m.sql.lock, []any{c.id}
}

// counts is what such a query says: rows taken, rows of others.
type counts int64

func scanCounts(won, other *counts) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var held bool
		if err := scan((*int64)(won), &held); err != nil {
			return err
		}
		if held {
			*other = 1
		}
		return nil
	}
}

func (won counts) outcome(other counts) Outcome {
	switch {
	case won > 0:
		return Acquired
	case other > 0:
		return Held
	}
	return Gone
}

// maxID is the width of the inbox's column. A longer id is replaced by its hash: cut,
// two messages would be one.
const maxID = 128

func inboxID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
