package amqp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Mismatch says how a queue or exchange differs from its declaration. Errors
// with [longshore.CodeMismatch] wrap one.
type Mismatch struct {
	Kind     string // "queue" or "exchange"
	Name     string // of the queue or exchange
	Argument string // for example "x-queue-type" or "durable"
	Want     string // what was declared here
	Have     string // what exists
}

// Error names argument, what exists and what was wanted.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("%s is %s there, %s here (406 PRECONDITION_FAILED)", m.Argument, m.Have, m.Want)
}

// RabbitMQ's texts, for example: inequivalent arg 'x-message-ttl' for queue 'q' in
// vhost '/': received the value '10' of type 'signedint' but current is none
var (
	inequivalent = regexp.MustCompile(`inequivalent arg '([^']*)' for (queue|exchange) '(.*)' in vhost '.*': received (.*) but current is (.*)$`)
	typedValue   = regexp.MustCompile(`^(?:the value )?'(.*?)'(?: of type '\w+')?$`)
)

// parseMismatch reads the text of a refusal: RabbitMQ has no other form of it. nil: the text is
// about something else.
func parseMismatch(reason string) *Mismatch {
	m := inequivalent.FindStringSubmatch(reason)
	if m == nil {
		return nil
	}
	return &Mismatch{Argument: m[1], Kind: m[2], Name: m[3], Want: value(m[4]), Have: value(m[5])}
}

// value is a value as the broker writes it, without its Erlang type.
func value(s string) string {
	if m := typedValue.FindStringSubmatch(s); m != nil {
		return fmt.Sprintf("%q", m[1])
	}
	return s // "none"
}

// brokerError gives an error of a channel or connection its code. source is the
// queue or destination concerned.
func (s *settings) brokerError(op, source string, err error) *longshore.Error {
	out := &longshore.Error{Code: longshore.CodeConnLost, Op: op, Source: source, Err: err}
	var typed *longshore.Error
	if errors.As(err, &typed) {
		return typed
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		out.Code = longshore.CodeTimeout
		out.Err = fmt.Errorf("no answer from the broker: %w", err)
		return out
	}
	e, ok := conn.AsAMQP(err)
	if !ok {
		return out
	}
	out.Err = conn.Describe(e)
	switch e.Code {
	case amqp091.NotFound:
		out.Code, out.Err = longshore.CodeNotFound, fmt.Errorf("%s (404 NOT_FOUND)", missing(e.Reason))
		out.Hint, out.Fields = "create it, or set Declare", []longshore.Field{{Name: "vhost", Value: s.addr.VHost}}
	case amqp091.ResourceLocked:
		out.Code, out.Hint = longshore.CodeExclusive, "another connection holds it exclusively"
	case amqp091.AccessRefused:
		out.Code, out.Hint = longshore.CodeForbidden, "give "+s.login.Who()+" the permission"
		if strings.Contains(e.Reason, "exclusive") {
			out.Code, out.Hint = longshore.CodeExclusive, "another consumer has the queue for itself; it is tried again until it is free"
		} else {
			out.Fields = append(s.login.UserField(), longshore.Field{Name: "vhost", Value: s.addr.VHost})
		}
	case amqp091.PreconditionFailed:
		s.precondition(out, e.Reason)
	case amqp091.NotImplemented:
		out.Code = longshore.CodeUnsupported
	case amqp091.ContentTooLarge:
		out.Code = longshore.CodeTooLarge
	}
	return out
}

// precondition sorts out the causes of code 406, which RabbitMQ uses for a mismatch, an ack timeout
// and a message that is too large; only the text tells them apart.
func (s *settings) precondition(out *longshore.Error, reason string) {
	out.Code = longshore.CodeRefused
	switch m := parseMismatch(reason); {
	case m != nil:
		out.Code, out.Err = longshore.CodeMismatch, m
		out.Fields = []longshore.Field{{Name: "argument", Value: m.Argument}, {Name: "want", Value: m.Want}, {Name: "have", Value: m.Have}}
		out.Hint = "change Declare, or leave it empty to use the " + m.Kind + " as it is"
	case strings.Contains(reason, "acknowledgement") && strings.Contains(reason, "timed out"):
		out.Code = longshore.CodeAckTimeout
	case strings.Contains(reason, "larger than configured max size"):
		out.Code = longshore.CodeTooLarge
	}
}

// missing shortens "no queue 'orders' in vhost '/'" for an operation that has named it.
func missing(reason string) string {
	_, rest, _ := strings.Cut(reason, " - ")
	if rest == "" {
		return "it does not exist"
	}
	return rest
}

// onConnect gives an error of the connection the operation that wanted it and what it is
// about. The broker's address, a field of the error, stays in the text.
func onConnect(err error, op, source string) error {
	e, ok := errors.AsType[*longshore.Error](err)
	if !ok {
		return err
	}
	out := *e
	out.Source, out.Op = source, op
	for _, f := range e.Fields {
		if f.Name == "address" {
			out.Op = fmt.Sprintf("%s at %s", op, f.Value)
		}
	}
	return &out
}
