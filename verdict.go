package longshore

import (
	"errors"
	"time"
)

// Verdict is what becomes of a delivery. Its String is the label in metrics.
type Verdict uint8

const (
	// VerdictNone is not a verdict: the error follows the redelivery policy.
	VerdictNone Verdict = iota
	// VerdictAck: done.
	VerdictAck
	// VerdictRetry: again later; counts as an attempt.
	VerdictRetry
	// VerdictReject: never again; to the dead-letter destination.
	VerdictReject
	// VerdictDiscard: acked although it failed; logged and counted.
	VerdictDiscard
	// VerdictRelease: again later, not its fault; not counted as an attempt.
	VerdictRelease
	// VerdictLost: the broker took it back before it was settled.
	VerdictLost
)

// String returns "ack", "retry", "reject", "discard", "release", "lost" or "".
func (v Verdict) String() string {
	switch v {
	case VerdictAck:
		return "ack"
	case VerdictRetry:
		return "retry"
	case VerdictReject:
		return "reject"
	case VerdictDiscard:
		return "discard"
	case VerdictRelease:
		return "release"
	case VerdictLost:
		return "lost"
	case VerdictNone:
	}
	return ""
}

// Retry returns an error that makes the container deliver the message again,
// not before delay. It counts as an attempt: after the last one the message
// goes to the dead-letter destination. A delay of 0 or less means the policy's
// backoff. err is the reason and may be nil.
func Retry(err error, delay time.Duration) error {
	return &verdictError{verdict: VerdictRetry, delay: delay, err: err}
}

// Reject returns an error that sends the message to the dead-letter destination at
// once. err is the reason and may be nil.
func Reject(err error) error { return &verdictError{verdict: VerdictReject, err: err} }

// Discard returns an error that acks the message, logs err and counts it.
// Nothing of the message is kept. err may be nil.
func Discard(err error) error { return &verdictError{verdict: VerdictDiscard, err: err} }

// Release returns an error that gives the message back uncounted, not before
// delay: the message is not at fault (lock busy, outcome of a commit unknown,
// breaker open). A delay of 0 or less means the policy's backoff. It is meant
// for middlewares. err may be nil.
func Release(err error, delay time.Duration) error {
	return &verdictError{verdict: VerdictRelease, delay: delay, err: err}
}

type verdictError struct {
	verdict Verdict
	delay   time.Duration
	err     error
}

func (e *verdictError) Error() string {
	if e.err == nil {
		return "longshore: " + e.verdict.String() + " asked for by the handler"
	}
	return e.err.Error()
}

func (e *verdictError) Unwrap() error { return e.err }

// VerdictOf returns the outermost explicit verdict of a handler's result and
// the delay that was asked for. nil is VerdictAck; an error without one is
// VerdictNone.
func VerdictOf(err error) (v Verdict, delay time.Duration) {
	if err == nil {
		return VerdictAck, 0
	}
	var ve *verdictError
	if errors.As(err, &ve) {
		return ve.verdict, ve.delay
	}
	return VerdictNone, 0
}
