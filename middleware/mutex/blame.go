package mutex

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
)

// blame says whose failure a handler's error is.
type blame uint8

const (
	// ofTheMessage: the handler's own failure, which counts as an attempt.
	ofTheMessage blame = iota
	// ofTheSession: the database ended the session or cannot be reached.
	ofTheSession
	// ofTheServer: the database works but takes no message's effects.
	ofTheServer
	// ofTheMoment: the database rolled back; a second run may pass.
	ofTheMoment
)

// evidence holds the known facts once a handler has failed and its transaction is rolled
// back.
type evidence struct {
	// verdict is the one that the handler gave itself.
	verdict longshore.Verdict
	// class is that of the handler's error.
	class Class
	// session is false if the session had ended before the rollback.
	session bool
	// cut: a context ended a statement. Drivers close the session then, so a lost
	// session proves nothing by itself.
	cut bool
	// reachable asks the database. It is called only if the rest decides nothing.
	reachable func() bool
}

// judge is a pure function of the evidence. The state of the session is evidence of its
// own because drivers report its loss by errors without a code: "conn closed" of pgx,
// "invalid connection" of go-sql-driver.
func (e evidence) judge() blame {
	switch e.verdict {
	case longshore.VerdictNone, longshore.VerdictRetry:
	case longshore.VerdictAck, longshore.VerdictReject, longshore.VerdictDiscard, longshore.VerdictRelease, longshore.VerdictLost:
		return ofTheMessage // the handler has decided
	}
	switch {
	case e.cut && !e.session:
		if e.reachable() {
			return ofTheMessage // its statement was too slow
		}
		return ofTheSession // no answer came: a black hole looks like a slow statement
	case !e.session, e.class == ClassLost:
		return ofTheSession
	case unfit(e.class):
		return ofTheServer
	case e.class == ClassRolledBack && e.verdict == longshore.VerdictNone:
		return ofTheMoment
	}
	return ofTheMessage
}

// evidenceOf collects the evidence after the rollback. gone: the guard saw the session's
// end and cancelled the handler's context itself.
func (m *Mutex) evidenceOf(ctx context.Context, tx Tx, rollback, err error, gone bool) evidence {
	e := evidence{class: m.class(err), session: !gone, reachable: func() bool { return m.reachable(ctx) }}
	e.verdict, _ = longshore.VerdictOf(err)
	var cause error
	if s, ok := tx.(Session); ok {
		e.class = m.knownClass(err)
		cause = s.Lost()
	} else if m.class(rollback) == ClassLost {
		cause = rollback
	}
	if cause != nil {
		e.session = false
	}
	e.cut = errors.Is(err, context.DeadlineExceeded) || errors.Is(err, longshore.CodeTimeout) ||
		(!gone && errors.Is(err, context.Canceled)) ||
		errors.Is(cause, context.DeadlineExceeded) || (!gone && errors.Is(cause, context.Canceled))
	return e
}

// reachable says whether a transaction can be begun now.
func (m *Mutex) reachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.LockTimeout)
	defer cancel()
	tx, err := m.store.Begin(ctx)
	if err != nil {
		return false
	}
	_ = tx.Rollback(ctx)
	return true
}

// failed is the verdict after a rollback.
func (m *Mutex) failed(ctx context.Context, c claim, err error, e evidence) error {
	m.counter.failed.Add(1)
	if e.verdict == longshore.VerdictDiscard {
		return m.discard(ctx, c, err)
	}
	if ctx.Err() != nil { // the drain, or the delivery is lost: the container knows
		return err
	}
	_, wanted := longshore.VerdictOf(err)
	switch e.judge() {
	case ofTheSession:
		return m.comesBack(&longshore.Error{Code: longshore.CodeConnLost, Op: "a statement of the handler", Err: err,
			Hint: "look at the database: it ended the session, or it cannot be reached"}, max(m.delay(1), wanted))
	case ofTheServer:
		return m.comesBack(&longshore.Error{Code: longshore.CodeRefused, Op: "a statement of the handler", Err: err,
			Hint: "look at the database's role, disk, memory and connections"}, max(troubleDelay, wanted))
	case ofTheMoment:
		return &rolledBack{err: err, ofOne: true}
	case ofTheMessage:
	}
	return err
}

// unfit: a database in this state takes no message's effects.
func unfit(c Class) bool { return c == ClassReadOnly || c == ClassExhausted || c == ClassRefused }
