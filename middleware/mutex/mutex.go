package mutex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Mutex is a middleware: around a handler it makes sure that the handler's effects in
// the database happen once per message, however often the message is delivered. It
// may be used by several containers.
type Mutex struct {
	store   Store
	cfg     Config
	sql     statements
	memory  memory
	gate    gate
	counter counters
	checked atomic.Bool
	trouble logs.Alarm // the database takes nothing: deliveries are given back
	twice   logs.Quiet // of the line about rows with the same id
}

// New checks the configuration and returns a mutex. It does no I/O. Errors:
// [longshore.CodeConfig], with all that is wrong.
func New(s Store, cfg Config) (*Mutex, error) {
	cfg = cfg.defaults()
	err := cfg.check()
	if s == nil {
		err = errors.Join(errors.New("no store"), err)
	} else {
		err = errors.Join(checkDialect(s.Dialect()), err)
		if cfg.Delete == DeleteLast && s.Dialect() == SQLite {
			err = errors.Join(err, errors.New("Delete: SQLite has no row locks; use DeleteFirst"))
		}
	}
	if err != nil {
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "mutex.New", Err: err, Hint: "see go doc mutex.Config"}
	}
	return &Mutex{store: s, cfg: cfg, sql: statementsFor(s.Dialect(), &cfg)}, nil
}

// Name is "mutex".
func (m *Mutex) Name() string { return "mutex" }

// Wrap runs next in a transaction that holds the message's row.
func (m *Mutex) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		c, err := m.claimOf(d)
		if err != nil {
			return longshore.Reject(err)
		}
		// A transaction that the database itself rolled back is run again here: it does
		// not count as a failed attempt.
		for try := 1; ; try++ {
			err = m.once(ctx, d, c, next)
			var again *rolledBack
			if !errors.As(err, &again) {
				return err
			}
			if try == maxTries || !pause(ctx, try) {
				return again.last(m.cfg.BusyDelay)
			}
		}
	})
}

const maxTries = 3

// rolledBack asks for another try.
type rolledBack struct {
	err   error
	ofOne bool // of a statement of the handler, which may as well be its fault
}

func (e *rolledBack) Error() string { return e.err.Error() }

// last is the verdict when there is no other try.
func (e *rolledBack) last(delay time.Duration) error {
	if e.ofOne {
		return e.err
	}
	return longshore.Release(e.err, delay)
}

// pause keeps two transactions from meeting again at once.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(time.Duration(try) * time.Duration(5+rand.IntN(20)) * time.Millisecond) //nolint:gosec // jitter
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// claimOf finds the id of a delivery.
func (m *Mutex) claimOf(d *longshore.Delivery) (claim, error) {
	if m.cfg.Mode == Lock {
		h := d.Received().Headers
		for _, name := range m.cfg.Headers {
			if id := h.String(name); id != "" {
				return claim{id: id}, nil
			}
		}
		switch m.cfg.NoHeader {
		case PassThrough:
			return claim{none: true}, nil
		case RejectNoHeader:
			return claim{}, &longshore.Error{Code: longshore.CodeBadHeader, Op: "mutex: no header " + strings.Join(m.cfg.Headers, " or "),
				Source: d.Origin.Source(), Hint: "publish through mutex.Outbox, use mode Inbox, or choose another NoHeader"}
		case UseInbox:
		}
	}
	id := m.cfg.Identity(d)
	if id == "" {
		return claim{}, &longshore.Error{Code: longshore.CodeBadHeader, Op: "mutex: the message has no id", Source: d.Origin.Source(),
			Hint: "let the producer set Message.ID or the header " + longshore.HeaderID + ", or set Config.Identity"}
	}
	return claim{id: inboxID(id), inbox: true}, nil
}

// once is one transaction.
func (m *Mutex) once(ctx context.Context, d *longshore.Delivery, c claim, next longshore.Handler) error {
	// The transaction must not end by the handler's context: database/sql would roll
	// it back by itself, also between a success and its commit.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	tx, out, err := m.limited(ctx, life, end, c)
	if err == nil && out == Gone && !c.inbox && m.cfg.Absent == HandleAbsent {
		m.counter.absent.Add(1)
		c.none = true
		tx, out, err = m.limited(ctx, life, end, c)
	}
	switch {
	case err != nil:
		return m.noTransaction(ctx, err)
	case out == Held:
		return m.held(c, d)
	case out == Gone:
		return m.absent(c, d)
	}
	defer m.gate.leave()
	m.counter.acquired.Add(1)
	m.rowFree(c.id)
	defer func() { _ = tx.Rollback(life) }() // also when the handler panics or ends its goroutine; after a commit it does nothing
	d.HoldAck()                              // carried out before the commit, it would lose the effect of a commit that fails
	after := &afterCommit{}
	err, lost := m.work(context.WithValue(ctx, afterKey{}, after), tx, d, next)
	if err == nil {
		err = m.deleteLast(life, tx, c)
	}
	if err == nil {
		err = m.commit(life, tx)
		if err == nil {
			after.run(life)
		}
		return err
	}
	rollback := tx.Rollback(life)
	return m.failed(ctx, c, err, m.evidenceOf(ctx, tx, rollback, err, lost))
}

// deleteLast deletes the row that the transaction has locked. It is no error if the row is
// gone: only the handler can have deleted it.
func (m *Mutex) deleteLast(life context.Context, tx Tx, c claim) error {
	if m.cfg.Delete != DeleteLast || c.none || c.inbox {
		return nil
	}
	ctx, cancel := context.WithTimeout(life, m.cfg.CommitTimeout)
	defer cancel()
	if _, err := tx.Exec(ctx, m.sql.delete, c.id); err != nil {
		return fmt.Errorf("longshore: delete mutex row %q after its handler, which must leave commit and rollback to the mutex and return the errors of its statements: %w", c.id, err)
	}
	return nil
}

// limited begins within LockTimeout, or until the handler's context ends. With
// Acquired comes a place in the gate.
func (m *Mutex) limited(ctx, life context.Context, end context.CancelCauseFunc, c claim) (Tx, Outcome, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	timer := time.AfterFunc(m.cfg.LockTimeout, func() { end(errWaitedTooLong) })
	unlink := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	tx, out, err := m.beginInTurn(life, c)
	inTime, wanted := timer.Stop(), unlink()
	if inTime && wanted {
		return tx, out, err
	}
	if tx != nil {
		_ = tx.Rollback(life)
		m.gate.leave()
	}
	if !wanted {
		return nil, 0, context.Cause(ctx)
	}
	return nil, 0, errWaitedTooLong
}

func (m *Mutex) beginInTurn(ctx context.Context, c claim) (Tx, Outcome, error) {
	if err := m.gate.enter(ctx, m.places()); err != nil {
		return nil, 0, err
	}
	tx, out, err := m.begin(ctx, c)
	if tx == nil {
		m.gate.leave()
	}
	return tx, out, err
}

// work calls the handler. Its context ends when the session is lost.
func (m *Mutex) work(ctx context.Context, tx Tx, d *longshore.Delivery, next longshore.Handler) (err error, lost bool) { //nolint:revive // lost explains err
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var gone atomic.Bool
	if g, ok := tx.(Guard); ok {
		stop := g.Watch(func(cause error) {
			gone.Store(true)
			cancel(cause)
		})
		defer stop()
	}
	err = next.Handle(tx.Put(ctx), d)
	return err, gone.Load()
}

// class is the configured one, or that of the dialect.
func (m *Mutex) class(err error) Class {
	if c := m.knownClass(err); c != ClassOther {
		return c
	}
	return Classify(m.sql.dialect, err)
}

// knownClass is class for the error of a handler, which may come from anything that the
// handler calls.
func (m *Mutex) knownClass(err error) Class {
	if err == nil {
		return ClassOther
	}
	if m.cfg.Classify != nil {
		if c := m.cfg.Classify(err); c != ClassOther {
			return c
		}
	}
	return classOf(m.sql.dialect, err)
}
