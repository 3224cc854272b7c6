package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/wire"
)

// AsAMQP returns the protocol's error in err's tree.
func AsAMQP(err error) (*amqp091.Error, bool) {
	var e *amqp091.Error
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	return nil, false
}

// Describe turns a protocol error into text: "NOT_FOUND - no queue 'x'" has its
// number put behind it.
func Describe(e *amqp091.Error) error {
	if name, rest, ok := strings.Cut(e.Reason, " - "); ok && name == strings.ToUpper(name) {
		return fmt.Errorf("%s (%d %s)", rest, e.Code, name)
	}
	return fmt.Errorf("%s (%d)", e.Reason, e.Code)
}

// at is the field of a failure to connect.
func at(n Node) []longshore.Field { return []longshore.Field{{Name: "address", Value: n.String()}} }

// Who is the user in an error's text: with EXTERNAL it is known to the broker alone.
func (s *Settings) Who() string {
	switch {
	case s.External:
		return "the user that the client certificate names"
	case s.User == "":
		return "a user without a name"
	}
	return fmt.Sprintf("user %q", s.User)
}

// UserField is nil where the user is not known here.
func (s *Settings) UserField() []longshore.Field {
	if s.External || s.User == "" {
		return nil
	}
	return []longshore.Field{{Name: "user", Value: s.User}}
}

// refused explains a handshake that the broker did not like.
func (s *Settings) refused(n Node, err error, hungUp bool) error {
	out := &longshore.Error{Code: longshore.CodeUnreachable, Op: "connect to rabbitmq at " + n.String(), Err: err, Fields: at(n),
		Hint: "it hung up before the connection was open: check that the port is AMQP's, and that TLS is used on both sides or on none"}
	e, ok := AsAMQP(err)
	if !ok {
		return out
	}
	out.Err = Describe(e)
	switch {
	case e == amqp091.ErrSASL:
		out.Code, out.Err = longshore.CodeAuth, errors.New("the broker offers no login mechanism that is configured here")
		out.Hint = "EXTERNAL needs a plugin on the broker and a client certificate; else use User and Password"
	case e.Server && e.Code == amqp091.NotAllowed:
		out.Code, out.Err = longshore.CodeVhost, fmt.Errorf("vhost %q does not exist or %s may not enter it (530 NOT_ALLOWED)", s.Address.VHost, s.Who())
		out.Hint = `create it or grant access (the URL's path is the vhost, none means "/")`
		out.Fields = append(append(out.Fields, longshore.Field{Name: "vhost", Value: s.Address.VHost}), s.UserField()...)
	case e.Server && e.Code == amqp091.AccessRefused, e == amqp091.ErrCredentials && hungUp:
		// Without a word the broker hangs up during login only when it refuses it.
		out.Code, out.Err = longshore.CodeAuth, fmt.Errorf("login refused for %s (403 ACCESS_REFUSED)", s.Who())
		out.Hint = "check the user and the password from " + s.Password.From()
		out.Fields = append(out.Fields, s.UserField()...)
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

func (s *Settings) unreachable(n Node, err error) error {
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
func (s *Settings) tlsError(n Node, err error) error {
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
