package mutex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// noTransaction is the verdict when there was no transaction or no answer.
func (m *Mutex) noTransaction(ctx context.Context, err error) error {
	if ctx.Err() != nil { // the drain, or the delivery is lost: the container knows
		return context.Cause(ctx)
	}
	m.counter.failed.Add(1)
	e := &longshore.Error{Code: longshore.CodeConnLost, Op: "mutex: take the row", Err: err}
	switch m.class(err) {
	case ClassRolledBack:
		return &rolledBack{err: err}
	case ClassReadOnly:
		e.Code, e.Hint = longshore.CodeRefused, "the database takes no writes: connect to the primary"
		return m.comesBack(e, troubleDelay)
	case ClassRefused:
		e.Code, e.Hint = longshore.CodeAuth, "the database refuses the login: look at its user and password"
		return m.comesBack(e, troubleDelay)
	case ClassSchema:
		e.Code, e.Hint = longshore.CodeNotFound, "create the tables: longshore mutex ddl"
		return m.comesBack(e, troubleDelay)
	default:
		if errors.Is(err, errWaitedTooLong) {
			e.Code, e.Hint = longshore.CodeTimeout, "make the pool larger than the number of workers, or LockTimeout longer"
		}
		return m.comesBack(e, m.delay(1))
	}
}

// comesBack releases a delivery for the database's fault. It is logged once a minute:
// such a delivery is neither an attempt nor a failure, so no other line says why nothing
// gets on.
func (m *Mutex) comesBack(err error, delay time.Duration) error {
	if stands, due := m.trouble.Raise(time.Now()); due {
		m.cfg.Logger.Warn("mutex gives a delivery back", append(logs.Failure(err), zap.Duration("retry_in", delay), logs.Repeated(stands))...)
	}
	return longshore.Release(err, delay)
}

// held is the verdict on a delivery whose row another owner has: a second copy, or the
// first one whose session the database has not yet found dead.
func (m *Mutex) held(c claim, d *longshore.Delivery) error {
	m.counter.held.Add(1)
	seen := m.memory.see(c.id, time.Now())
	e := &longshore.Error{Code: longshore.CodeBusy, Op: fmt.Sprintf("mutex %q", c.id), Source: d.Origin.Source(), Err: errHeldElsewhere}
	if m.cfg.Busy == DeadLetter {
		return longshore.Reject(e)
	}
	if m.cfg.BusyMax > 0 && seen.since >= m.cfg.BusyMax {
		e.Hint = fmt.Sprintf("held for %v, BusyMax is %v", seen.since.Round(time.Second), m.cfg.BusyMax)
		m.memory.forget(c.id, time.Now()) // the line about the dead letter says how it ended
		return longshore.Reject(e)
	}
	if seen.alert {
		m.cfg.Logger.Warn("mutex row held for long", zap.String("mutex_id", c.id), zap.Duration("age", seen.since))
	}
	return longshore.Release(e, m.delay(seen.times))
}

// rowFree forgets what was seen of a row that another owner held, and ends the alarm about it.
func (m *Mutex) rowFree(id string) {
	if age, reported := m.memory.forget(id, time.Now()); reported {
		m.cfg.Logger.Warn("mutex row free again", zap.String("mutex_id", id), zap.Duration("after", age))
	}
}

// delay is BusyDelay, doubled with each time up to 20 times that, ± 20 %.
func (m *Mutex) delay(times int) time.Duration {
	d := m.cfg.BusyDelay
	for range min(times-1, 5) {
		d *= 2
	}
	d = min(d, busyGrowth*m.cfg.BusyDelay)
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // jitter
}

// absent is the verdict on a delivery without a row.
func (m *Mutex) absent(c claim, d *longshore.Delivery) error {
	m.counter.absent.Add(1)
	if c.inbox {
		m.rowFree(c.id)
		return nil
	}
	first := !d.Origin.Redelivered && d.Attempt <= 1 && !d.Received().Headers.Has(HeaderRelayed)
	if first {
		// A first copy should find its row: many of these mean a producer that publishes
		// before its commit, or another database.
		m.counter.absentFirst.Add(1)
	}
	if m.cfg.Absent == Confirm && first && m.memory.see(c.id, time.Now()).times == 1 {
		return longshore.Release(errNotYetVisible, confirmDelay)
	}
	m.rowFree(c.id)
	if m.cfg.Absent == RejectAbsent {
		return longshore.Reject(&longshore.Error{Code: longshore.CodeState, Op: fmt.Sprintf("mutex %q", c.id), Source: d.Origin.Source(), Err: errNoRow,
			Hint: "it was handled before, or its producer has inserted no row: compare the tables and headers of both"})
	}
	return nil
}

// commit ends a transaction whose handler was successful. That the delivery may be
// lost by now is not a reason not to: the work is done, and the copy will find no row.
func (m *Mutex) commit(life context.Context, tx Tx) error {
	ctx, cancel := context.WithTimeout(life, m.cfg.CommitTimeout)
	defer cancel()
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		m.counter.committed.Add(1)
		if ended, due := m.trouble.Over(time.Now()); due {
			m.cfg.Logger.Warn("mutex handles deliveries again", ended...)
		}
		return nil
	case m.class(err) == ClassRolledBack:
		return &rolledBack{err: err}
	case errors.Is(err, ErrRolledBack) && unfit(m.class(err)):
		return m.comesBack(&longshore.Error{Code: longshore.CodeRefused, Op: "commit of the mutex's transaction", Err: err,
			Hint: "the database takes nothing now: look at its disk, memory and role"}, troubleDelay)
	case errors.Is(err, ErrRolledBack):
		// The handler hid an error. That is its failure, to be counted.
		return &longshore.Error{Code: longshore.CodeHandler, Op: "commit of the mutex's transaction", Err: err,
			Hint: "return the errors of all statements from the handler"}
	}
	m.counter.unknown.Add(1)
	hint := "the row decides at the next delivery"
	if errors.Is(err, errEndedByHandler) {
		hint = "leave commit and rollback to the mutex"
	}
	return m.comesBack(&longshore.Error{Code: longshore.CodeConnLost, Op: "commit of the mutex's transaction: the outcome is unknown",
		Err: err, Hint: hint}, m.cfg.BusyDelay)
}

// discard settles the row of a message that is to be forgotten, in a transaction of
// its own: the handler's effects are not wanted.
func (m *Mutex) discard(ctx context.Context, c claim, verdict error) error {
	if c.none {
		return verdict
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	tx, out, err := m.limited(ctx, life, end, c)
	if err == nil && out == Acquired {
		defer m.gate.leave()
		if err = m.deleteLast(life, tx, c); err == nil {
			err = m.commit(life, tx)
		}
		_ = tx.Rollback(life) // after a commit it does nothing
	}
	if err != nil || out == Held {
		return longshore.Release(errors.Join(verdict, err), m.delay(1))
	}
	return verdict
}
