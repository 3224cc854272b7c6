package amqp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/wire"
)

// Mismatch says how a queue or exchange differs from its declaration. Errors
// with [longshore.CodeMismatch] wrap one.
type Mismatch struct {
	Kind     string // "queue" or "exchange"
	Name     string
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

func parseMismatch(reason string) *Mismatch {
	m := inequivalent.FindStringSubmatch(reason)
	if m == nil {
		return nil
	}
	return &Mismatch{Argument: m[1], Kind: m[2], Name: m[3], Want: value(m[4]), Have: value(m[5])}
}

func value(s string) string {
	if m := typedValue.FindStringSubmatch(s); m != nil {
		return fmt.Sprintf("%q", m[1])
	}
	return s // "none"
}

// asAMQP returns the protocol's error in err's tree.
func asAMQP(err error) (*amqp091.Error, bool) {
	var e *amqp091.Error
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	return nil, false
}

// describe turns a protocol error into text: "NOT_FOUND - no queue 'x'" has its
// number put behind it.
func describe(e *amqp091.Error) error {
	if name, rest, ok := strings.Cut(e.Reason, " - "); ok && name == strings.ToUpper(name) {
		return fmt.Errorf("%s (%d %s)", rest, e.Code, name)
	}
	return fmt.Errorf("%s (%d)", e.Reason, e.Code)
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
	e, ok := asAMQP(err)
	if !ok {
		return out
	}
	out.Err = describe(e)
	switch e.Code {
	case amqp091.NotFound:
		out.Code, out.Err = longshore.CodeNotFound, fmt.Errorf("%s (404 NOT_FOUND)", missing(e.Reason))
		out.Hint, out.Fields = "create it, or set Declare", []longshore.Field{{Name: "vhost", Value: s.addr.vhost}}
	case amqp091.ResourceLocked:
		out.Code, out.Hint = longshore.CodeExclusive, "another connection holds it exclusively"
	case amqp091.AccessRefused:
		out.Code, out.Hint = longshore.CodeForbidden, "give "+s.who()+" the permission"
		if strings.Contains(e.Reason, "exclusive") {
			out.Code, out.Hint = longshore.CodeExclusive, "another consumer has the queue for itself; it is tried again until it is free"
		} else {
			out.Fields = append(s.userField(), longshore.Field{Name: "vhost", Value: s.addr.vhost})
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

// at is the field of a failure to connect.
func at(n node) []longshore.Field { return []longshore.Field{{Name: "address", Value: n.String()}} }

// who is the user in an error's text: with EXTERNAL it is known to the broker alone.
func (s *settings) who() string {
	switch {
	case s.External:
		return "the user that the client certificate names"
	case s.User == "":
		return "a user without a name"
	}
	return fmt.Sprintf("user %q", s.User)
}

// userField is nil where the user is not known here.
func (s *settings) userField() []longshore.Field {
	if s.External || s.User == "" {
		return nil
	}
	return []longshore.Field{{Name: "user", Value: s.User}}
}

// refused explains a handshake that the broker did not like.
func (s *settings) refused(n node, err error, hungUp bool) error {
	out := &longshore.Error{Code: longshore.CodeUnreachable, Op: "connect to rabbitmq at " + n.String(), Err: err, Fields: at(n),
		Hint: "it hung up before the connection was open: check that the port is AMQP's, and that TLS is used on both sides or on none"}
	e, ok := asAMQP(err)
	if !ok {
		return out
	}
	out.Err = describe(e)
	switch {
	case e == amqp091.ErrSASL:
		out.Code, out.Err = longshore.CodeAuth, errors.New("the broker offers no login mechanism that is configured here")
		out.Hint = "EXTERNAL needs a plugin on the broker and a client certificate; else use User and Password"
	case e.Server && e.Code == amqp091.NotAllowed:
		out.Code, out.Err = longshore.CodeVhost, fmt.Errorf("vhost %q does not exist or %s may not enter it (530 NOT_ALLOWED)", s.addr.vhost, s.who())
		out.Hint = `create it or grant access (the URL's path is the vhost, none means "/")`
		out.Fields = append(append(out.Fields, longshore.Field{Name: "vhost", Value: s.addr.vhost}), s.userField()...)
	case e.Server && e.Code == amqp091.AccessRefused, e == amqp091.ErrCredentials && hungUp:
		// Without a word the broker hangs up during login only when it refuses it.
		out.Code, out.Err = longshore.CodeAuth, fmt.Errorf("login refused for %s (403 ACCESS_REFUSED)", s.who())
		out.Hint = "check the user and the password from " + s.Password.From()
		out.Fields = append(out.Fields, s.userField()...)
		if s.External {
			out.Err = errors.New("login by client certificate refused (403 ACCESS_REFUSED)")
			out.Hint = "check the certificate and the user it names on the broker"
		}
	case e == amqp091.ErrVhost, e == amqp091.ErrCredentials:
		out.Err = errors.New("the connection ended during the handshake")
		out.Hint = "check that RabbitMQ, not something else, listens there"
	}
	return out
}

func (s *settings) unreachable(n node, err error) error {
	out := &longshore.Error{Code: longshore.CodeUnreachable, Op: "connect to rabbitmq at " + n.String(), Err: err, Fields: at(n),
		Hint: "start the broker or check host and port"}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Err = fmt.Errorf("no answer within the time for connecting: %w", err)
	case errors.As(err, &dns):
		out.Err, out.Hint = dns, "check the host name"
	case errors.As(err, &op) && op.Err != nil:
		out.Err = op.Err // "connection refused", without repeating the address
	}
	return out
}

// tlsError says which check of the peer failed.
func (s *settings) tlsError(n node, err error) error {
	out := &longshore.Error{Code: longshore.CodeTLS, Op: "connect to rabbitmq at " + n.String(), Err: err, Fields: at(n)}
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name):
		out.Hint = "the certificate is for another name: connect by a name it holds, or set TLS.ServerName"
	case errors.As(err, &unknown):
		out.Hint = "the certificate is self-signed or from an unknown authority: add it to TLS.RootCAs"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		out.Hint = "the certificate has expired or is not valid yet: renew it, or check the clock"
	case errors.As(err, &invalid):
		out.Hint = "the certificate cannot be used for this"
	case errors.As(err, &record):
		out.Hint = "the peer does not speak TLS on this port: 5671 is RabbitMQ's usual one, or write amqp://"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return s.unreachable(n, err)
	case wire.IsEnd(err): // which says nothing about who it is
		out.Code = longshore.CodeUnreachable
		out.Hint = "it hung up during the TLS handshake: check that the port is RabbitMQ's for TLS (5671 is the usual one) and, if it goes on, its log"
	default:
		out.Hint = "check the certificates on both sides"
	}
	return out
}
