package longshore

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels of settling, receiving and stopping. The package documentation
// says which call returns which.
var (
	// ErrSettled is returned by a settle verb when the delivery was settled before.
	ErrSettled = errors.New("longshore: delivery already settled")
	// ErrLost is returned when the broker has taken the delivery back (connection
	// gone, partition revoked, lease expired); it is also the cause of a cancelled
	// handler context then. Nothing was changed at the broker.
	ErrLost = errors.New("longshore: delivery lost, the broker will redeliver it")
	// ErrClosed is returned by every call on a closed consumer or publisher.
	ErrClosed = errors.New("longshore: closed")
	// ErrCanceled is returned by Receive after Cancel, once the buffer is empty.
	ErrCanceled = errors.New("longshore: consumer canceled")
	// ErrNoRoom: the bodies that other deliveries of the same batch have put in the place
	// of what was received leave no room; see [Delivery.Reserve].
	ErrNoRoom = errors.New("longshore: no room for a larger body")
	// ErrStopping is the cause of a handler context that the drain deadline ended.
	ErrStopping = errors.New("longshore: stopping, the drain deadline has passed")
)

// Code names a kind of failure. Codes are stable, and a Code is itself a target
// for errors.Is: errors.Is(err, longshore.CodeAuth).
type Code string

// Error makes a Code usable as a target of errors.Is. It is the bare word, which a
// printed map of counts by code shows too.
func (c Code) Error() string { return string(c) }

// The codes. `longshore explain CODE` prints a page about each.
const (
	CodeConfig      Code = "config"       // a configuration that cannot work
	CodeBadAddress  Code = "bad-address"  // an address or URL that cannot be read
	CodeAuth        Code = "auth"         // login refused
	CodeForbidden   Code = "forbidden"    // logged in, but not allowed to do this
	CodeVhost       Code = "vhost"        // virtual host missing or closed to the user
	CodeNotFound    Code = "not-found"    // queue, topic or exchange does not exist
	CodeMismatch    Code = "mismatch"     // it exists with other properties
	CodeExclusive   Code = "exclusive"    // another owner holds it exclusively
	CodeUnreachable Code = "unreachable"  // no response from the broker
	CodeTLS         Code = "tls"          // the peer could not be verified
	CodeWindow      Code = "window"       // prefetch or window too small for the workers
	CodeDrainBudget Code = "drain-budget" // the drain does not fit the stop timeout
	CodeAckTimeout  Code = "ack-timeout"  // the broker waited too long for a settlement
	CodeLeaseLost   Code = "lease-lost"   // a lease could not be kept
	CodeFenced      Code = "fenced"       // removed from the consumer group
	CodeConnLost    Code = "conn-lost"    // connection or channel ended
	CodeCanceledBy  Code = "canceled"     // the broker cancelled the consumer
	CodeBlocked     Code = "blocked"      // the broker blocks publishers
	CodePanic       Code = "panic"        // a handler panicked
	CodeHandler     Code = "handler"      // a handler returned an error
	CodeUndecodable Code = "undecodable"  // a body that does not decode
	CodeTombstone   Code = "tombstone"    // a message without a body, for a handler that cannot take one
	CodeNoHandler   Code = "no-handler"   // a router has no handler for the message
	CodeReturned    Code = "returned"     // given back so often that the broker would give it up
	CodeBusy        Code = "busy"         // another owner works on it
	CodeHops        Code = "hops"         // moved to dead-letter destinations, or put back, too often
	CodeDeadLetter  Code = "dead-letter"  // moving a message to its dead-letter destination failed
	CodeMaybeSent   Code = "maybe-sent"   // published, and no answer came: it may have been sent
	CodeUnroutable  Code = "unroutable"   // published, but no queue takes it
	CodeRefused     Code = "refused"      // the broker refused the message
	CodeTooLarge    Code = "too-large"    // larger than the broker takes
	CodeBadHeader   Code = "bad-header"   // a header that cannot be sent
	CodeExpired     Code = "expired"      // its time to live was over before it was moved on
	CodeTimeout     Code = "timeout"      // no answer in time
	CodeUnsupported Code = "unsupported"  // this broker or queue cannot do it
	CodeSettle      Code = "settle"       // an accepted settlement failed later
	CodeDrain       Code = "drain"        // a drain left something behind
	CodeState       Code = "state"        // not possible in this state
	CodeInternal    Code = "internal"     // a defect in this module
)

// Panic is the cause inside an error with [CodePanic].
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the value that was given to panic, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Error is a failure with a remedy. It prints in one line what happened, to
// what, and what to do; it never holds a password, a token or a URL with
// credentials.
type Error struct {
	Code   Code   // stable kind
	Op     string // what was done, to what: `open rabbitmq queue "orders" at host:5672`
	Source string // name of the source, destination or container concerned
	Hint   string // what to do about it
	Err    error  // the cause
	// Fields are facts of the text that logs and JSON show apart: user, vhost, topic.
	// Never a secret.
	Fields []Field
}

// Field is one fact of an [Error].
type Field struct{ Name, Value string }

// FieldsOf returns the fields of the outermost [*Error] in err's tree that has some.
func FieldsOf(err error) []Field {
	var e *Error
	for errors.As(err, &e) {
		if len(e.Fields) > 0 {
			return e.Fields
		}
		err = e.Err
	}
	return nil
}

// Error returns "longshore: what, to what: why; what to do".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("longshore: ")
	b.WriteString(e.Text())
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Text returns the message without prefix and hint, for output that shows them
// apart.
func (e *Error) Text() string {
	cause := ""
	if e.Err != nil {
		cause = strings.TrimPrefix(e.Err.Error(), "longshore: ")
	}
	switch {
	case e.Op == "" && cause == "":
		return string(e.Code)
	case e.Op == "":
		return cause
	case cause == "":
		return e.Op
	default:
		return e.Op + ": " + cause
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the same [Code], or an *Error with it.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return t == e.Code
	case *Error:
		return t == e || (t.Code == e.Code && t.Op == "" && t.Err == nil)
	}
	return false
}

// CodeOf returns the code of the outermost [*Error] in err's tree: what metrics
// and logs show. It is "" for nil and [CodeHandler] for any other error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeHandler
}
