package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// codeOr is that of a failure, for metrics.
func codeOr(err error) longshore.Code { return longshore.CodeOf(brokerError("", "", err)) }

// brokerError gives an error of the client its code. Its text never holds what the
// login was made with: the client does not put it there.
func brokerError(op, source string, err error) error {
	if err == nil {
		return nil
	}
	var typed *longshore.Error
	if errors.As(err, &typed) {
		return err
	}
	out := &longshore.Error{Code: longshore.CodeConnLost, Op: op, Source: source, Err: err}
	var (
		ke *kerr.Error
		ne net.Error
	)
	switch {
	case errors.As(err, &ke):
		// An answer of the broker says more than anything that the client has wrapped around it.
		out.Code, out.Hint = codeOf(ke)
		out.Err = kafkaText(ke)
	case tlsFailed(err, out):
	// franz-go has no error value for this one: an HTTP or TLS answer is read as a length of some
	// hundred megabytes. The text is that of kgo 1.x; a changed one falls through to CodeConnLost.
	case strings.Contains(err.Error(), "invalid large response size"):
		out.Code, out.Err = longshore.CodeUnreachable, errors.New("what answers there is not Kafka")
		out.Hint = "check host and port, and whether the port is that of a TLS listener"
	case errors.Is(err, kgo.ErrClientClosed):
		return longshore.ErrClosed
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries):
		out.Code, out.Hint = longshore.CodeTimeout, "check that the partition's leader responds, or raise Timeout"
	// Before the plain deadline below: the time for a dial is the client's, and the cure another one.
	case errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "unable to dial"):
		out.Code, out.Hint = longshore.CodeUnreachable, "check host and port, and whether TLS is used on both sides or on none"
		out.Err = errors.New("no connection within the time for it")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		out.Code, out.Err = longshore.CodeTimeout, fmt.Errorf("no answer from the cluster: %w", err)
	// The client's guess (kgo.ErrFirstReadEOF has its kinds unexported): the first read ended at once.
	case strings.Contains(err.Error(), "is SASL missing"):
		out.Code, out.Hint = longshore.CodeAuth, "set SASL (in a URL a user, its password and sasl), if the port is that of a listener for logins"
		out.Err = errors.New("it hung up on a client that does not log in")
	case cluster.LoginFailed(err):
		out.Code, out.Hint = longshore.CodeAuth, "check Mechanism, User and Password"
	case errors.As(err, &ne), unreachable(err):
		out.Code, out.Hint = longshore.CodeUnreachable, "start a broker, or check host and port"
		out.Err = shortDial(err)
	}
	return out
}

// failure is brokerError with what the broker's settings know: who logs in, and where.
func (b *Broker) failure(op, source string, err error) error {
	out := brokerError(op, source, err)
	e, ok := out.(*longshore.Error) //nolint:errorlint // one that was made here and now
	if !ok || out == err {          //nolint:errorlint // the same one, of which others may be reading
		return out
	}
	e.Fields = append(e.Fields, longshore.Field{Name: "address", Value: b.address()})
	var ke *kerr.Error
	switch known, user := errors.As(err, &ke), b.cfg.SASL.User; {
	case e.Code == longshore.CodeForbidden && user != "":
		e.Fields = append(e.Fields, longshore.Field{Name: "user", Value: user})
		e.Hint = fmt.Sprintf("give user %q the permission: Read and Describe on the topic and Read on the group to consume, Write to publish", user)
	// Only an answer of the broker proves that it refused the login; the rest stays as it is.
	case e.Code != longshore.CodeAuth || !known:
	case ke.Code == kerr.IllegalSaslState.Code:
		e.Err, e.Hint = &wireError{text: "it takes no login on this port", kafka: ke}, "use the port of a listener for logins, or leave SASL out"
	case ke.Code == kerr.UnsupportedSaslMechanism.Code:
		e.Hint = fmt.Sprintf("the broker does not know %s: set another Mechanism", b.cfg.SASL.name())
	default:
		return b.refusedLogin(e, ke)
	}
	return out
}

// refusedLogin completes the error of a login: of whom, and where the password is from.
func (b *Broker) refusedLogin(e *longshore.Error, why error) error {
	s := &b.cfg.SASL
	who := ""
	e.Hint = "check Mechanism, User and Password"
	switch {
	case s.User != "":
		who = fmt.Sprintf(" for user %q", s.User)
		e.Fields = append(e.Fields, longshore.Field{Name: "user", Value: s.User})
		e.Hint = fmt.Sprintf("check the user and the password from %s, and that the broker knows the user for %s", s.Password.From(), s.name())
	case s.Native == nil && !s.Password.IsZero():
		e.Hint = "check the token from " + s.Password.From()
	}
	var ke *kerr.Error
	if errors.As(why, &ke) {
		e.Err = &wireError{text: "login refused" + who, kafka: ke}
	} else {
		e.Err = fmt.Errorf("login refused%s: %w", who, why)
	}
	return e
}

// name is the mechanism as Kafka writes it.
func (s *SASL) name() string {
	if s.Native != nil {
		return s.Native.Name()
	}
	if s.Mechanism == "" {
		return string(Plain)
	}
	return string(s.Mechanism)
}

// opened is failure for a first request. A broker that hangs up then, where a
// login is configured, has most likely refused it: not all say so.
func (b *Broker) opened(op, source string, err error) error {
	// ErrFirstReadEOF is the client's sign that TLS or SASL do not match, and has its own hints.
	var first *kgo.ErrFirstReadEOF
	if err != nil && errors.Is(err, io.EOF) && !errors.As(err, &first) && b.cfg.SASL.mechanism() != nil {
		return b.refusedLogin(&longshore.Error{Code: longshore.CodeAuth, Op: op, Source: source, Fields: []longshore.Field{{Name: "address", Value: b.address()}}},
			fmt.Errorf("the broker hung up during it: %w", err))
	}
	return b.failure(op, source, err)
}

// unreachable recognises errors of dialling, which the client wraps in text.
func unreachable(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) || strings.Contains(err.Error(), "unable to dial") ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// shortDial leaves out what the operation says already.
func shortDial(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}

// tlsFailed recognises errors of the handshake: the client would go on dialling for ever, and
// trying again cures none of them.
func tlsFailed(err error, out *longshore.Error) bool {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		alert   tls.AlertError
	)
	switch {
	// The order is from the special to the general: a CertificateVerificationError wraps the first
	// three.
	case errors.As(err, &name):
		out.Hint = "the certificate is for another name: the address that the broker advertises must be in it"
	case errors.As(err, &unknown):
		out.Hint = "the certificate is self-signed or from an unknown authority: add it to TLSConfig.RootCAs"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		out.Hint = "the certificate has expired or is not valid yet: renew it, or check the clock"
	case errors.As(err, &invalid), errors.As(err, &verify), errors.As(err, &alert):
		out.Hint = "check the certificates on both sides"
	case strings.Contains(err.Error(), "tls: private key"), strings.Contains(err.Error(), "tls: failed to find"):
		out.Hint = "the client's own certificate cannot be used: give certificate and key of one pair"
	case strings.Contains(err.Error(), "tls endpoint"):
		out.Err = errors.New("it answers as TLS does")
		out.Hint = "set TLS, or TLSConfig (in a URL kafkas://), or use the port of a listener without TLS"
	case strings.Contains(err.Error(), "is TLS missing"):
		out.Hint = "it hung up on a client without TLS: set TLS, or TLSConfig, if the port is that of a TLS listener"
	case errors.As(err, &record), strings.Contains(err.Error(), "is TLS m"):
		out.Hint = "the peer does not speak TLS on this port: use the port of a TLS listener, or set neither TLS nor TLSConfig"
	default:
		return false
	}
	out.Code = longshore.CodeTLS
	return true
}

// kafkaText is "it does not exist (UNKNOWN_TOPIC_OR_PARTITION)".
func kafkaText(e *kerr.Error) error {
	text := e.Description
	switch e.Code {
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code:
		text = "it does not exist"
	case kerr.SaslAuthenticationFailed.Code, kerr.IllegalSaslState.Code:
		text = "login refused"
	case kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code:
		text = "not allowed"
	}
	return &wireError{text: strings.TrimSuffix(text, "."), kafka: e}
}

// wireError keeps the broker's code for errors.Is.
type wireError struct {
	text  string      // the broker's message, in which a topic's own setting may be named
	kafka *kerr.Error // for errors.Is
}

func (e *wireError) Error() string { return e.text + " (" + e.kafka.Message + ")" }
func (e *wireError) Unwrap() error { return e.kafka }

// codeOf sorts Kafka's errors by what a person can do about them.
func codeOf(e *kerr.Error) (code longshore.Code, hint string) {
	switch e.Code {
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code:
		return longshore.CodeNotFound, "correct the name, create it, or set Declare"
	case kerr.SaslAuthenticationFailed.Code, kerr.IllegalSaslState.Code:
		return longshore.CodeAuth, "check User and Password"
	case kerr.UnsupportedSaslMechanism.Code:
		return longshore.CodeAuth, "the broker does not know this Mechanism"
	case kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code:
		return longshore.CodeForbidden, "give the user the permission"
	case kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code:
		return longshore.CodeTooLarge, "send less, or raise max.message.bytes of the topic and MaxBatchBytes"
	case kerr.RequestTimedOut.Code:
		return longshore.CodeTimeout, ""
	case kerr.UnknownMemberID.Code, kerr.IllegalGeneration.Code, kerr.FencedInstanceID.Code, kerr.FencedMemberEpoch.Code, kerr.StaleMemberEpoch.Code, kerr.UnreleasedInstanceID.Code:
		return longshore.CodeFenced, ""
	case kerr.InvalidSessionTimeout.Code:
		return longshore.CodeConfig, "set SessionTimeout within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
	case kerr.InvalidRegularExpression.Code:
		return longshore.CodeConfig, "correct the topics: with Pattern they are regular expressions"
	case kerr.ThrottlingQuotaExceeded.Code:
		return longshore.CodeBlocked, "raise the quota of this client"
	case kerr.UnsupportedVersion.Code:
		return longshore.CodeUnsupported, "the broker is too old for this"
	case kerr.BrokerNotAvailable.Code, kerr.CoordinatorNotAvailable.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code:
		return longshore.CodeUnreachable, ""
	}
	// After the list: some that are worth a code of their own are retriable too.
	if kerr.IsRetriable(e) { // a node that is not ready for it, or no longer responsible
		return longshore.CodeUnreachable, ""
	}
	return longshore.CodeRefused, ""
}

// unsupported is the error of what this kind of source cannot do.
func unsupported(what, source, why, hint string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: what, Source: source, Err: errors.New(why), Hint: hint}
}
