package sqs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/longshore-go/longshore"
)

// codeOf gives an error of a call its code. The second result says whether the
// same call may succeed later by itself.
func codeOf(err error) (code longshore.Code, passing bool) {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return codeOfAPI(api)
	}
	if typed, ok := errors.AsType[*longshore.Error](err); ok {
		return typed.Code, false
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var failed *tls.CertificateVerificationError
	switch text := err.Error(); {
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &failed):
		return longshore.CodeTLS, false
	case errors.Is(err, context.DeadlineExceeded):
		return longshore.CodeTimeout, true
	case strings.Contains(text, "get credentials") || strings.Contains(text, "retrieve credentials") || strings.Contains(text, "get identity"):
		return longshore.CodeAuth, false
	}
	return longshore.CodeUnreachable, true
}

// codeOfAPI classes an error that SQS returned; passing errors are worth another try.
func codeOfAPI(api smithy.APIError) (code longshore.Code, passing bool) {
	return codeOfName(api.ErrorCode(), api.ErrorFault() == smithy.FaultClient)
}

// codeOfName is codeOf for the name of an error, of a call or of an entry. Some have
// two: of the JSON protocol, and of the older one, which is what the SDK reports.
func codeOfName(name string, ours bool) (code longshore.Code, passing bool) {
	switch strings.TrimPrefix(name, "AWS.SimpleQueueService.") {
	case "QueueDoesNotExist", "NonExistentQueue":
		return longshore.CodeNotFound, false
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidAccessKeyId", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "IncompleteSignature", "IncompleteSignatureException", "InvalidSignatureException", "AuthFailure",
		"ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "InvalidSecurity":
		return longshore.CodeAuth, false
	case "AccessDenied", "AccessDeniedException", "NotAuthorized", "OptInRequired", "InvalidAddress",
		"KmsAccessDenied", "KMS.AccessDeniedException":
		return longshore.CodeForbidden, false
	case "QueueAlreadyExists", "QueueNameExists":
		return longshore.CodeMismatch, false
	case "RequestThrottled", "RequestThrottledException", "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException",
		"OverLimit", "RequestLimitExceeded", "BandwidthLimitExceeded", "SlowDown", "PriorRequestNotComplete",
		"KmsThrottled", "KMS.ThrottlingException", "QueueDeletedRecently":
		return longshore.CodeBlocked, true
	case "RequestTimeout", "RequestTimeoutException":
		return longshore.CodeTimeout, true
	case "UnsupportedOperation", "InvalidAction":
		return longshore.CodeUnsupported, false
	}
	if ours {
		return longshore.CodeRefused, false
	}
	return longshore.CodeUnreachable, true
}

// callError makes the error of a call. It shows code and message of the broker,
// not the request.
func callError(op, source string, err error) *longshore.Error {
	if typed, ok := errors.AsType[*longshore.Error](err); ok {
		return typed
	}
	code, _ := codeOf(err)
	e := &longshore.Error{Code: code, Op: op, Source: source, Err: plain(err), Hint: hintFor(code, apiCode(err))}
	if code == longshore.CodeNotFound {
		e.Err = fmt.Errorf("it does not exist for this account (%s)", apiCode(err))
	}
	return e
}

// hintFor says what to do about an error of a call, or of an entry of one. name is SQS's.
func hintFor(code longshore.Code, name string) string {
	if code != longshore.CodeBlocked && strings.HasPrefix(strings.ToUpper(name), "KMS") {
		return "look at the key that encrypts the queue: it must be enabled, and allow kms:Decrypt to consume, kms:GenerateDataKey besides to send"
	}
	switch code {
	case longshore.CodeNotFound:
		return "set Region, give the queue's URL or ARN, create it, or set Declare"
	case longshore.CodeAuth:
		return "check the clock, and the credentials: Config.Credentials, or what the SDK finds in environment, profile and role; a local server takes any, for example AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x"
	case longshore.CodeForbidden:
		return "allow sqs:ReceiveMessage, DeleteMessage, ChangeMessageVisibility, SendMessage, GetQueueUrl and GetQueueAttributes as needed"
	case longshore.CodeUnreachable, longshore.CodeTimeout:
		return "check region, endpoint and network"
	case longshore.CodeTLS:
		return "the certificate must be for the endpoint's host; AWS_CA_BUNDLE names further authorities"
	case longshore.CodeBlocked:
		return "SQS asks for fewer calls; they are tried again"
	}
	return ""
}

// failure is an error of a call of its own, with where the queue is.
func (s *queueSource) failure(op string, err error) *longshore.Error {
	e := *callError(op, s.ref.name, err)
	if p, unknown := s.place(); unknown == nil && len(e.Fields) == 0 {
		e.Fields = p.fields(e.Code)
	}
	return &e
}

// fields are where it was, for an error that may lie in that.
func (p *place) fields(code longshore.Code) []longshore.Field {
	switch code {
	case longshore.CodeAuth, longshore.CodeForbidden, longshore.CodeNotFound, longshore.CodeUnreachable, longshore.CodeTLS:
	default:
		return nil
	}
	return p.where()
}

// where the queue is.
func (p *place) where() []longshore.Field {
	fs := []longshore.Field{{Name: "region", Value: p.region}}
	if u, err := url.Parse(p.endpoint); err == nil && u.Host != "" { // without a user
		fs = append(fs, longshore.Field{Name: "endpoint", Value: u.Scheme + "://" + u.Host})
	}
	return fs
}

// apiCode is the code without the namespace that the older query protocol puts before it.
func apiCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService.")
	}
	return "unknown"
}

// plain cuts off what the SDK wraps around an error.
func plain(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Errorf("%s (%s)", strings.TrimSuffix(api.ErrorMessage(), "."), strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService."))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	var e *smithy.OperationError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// placed is the error of one message, with the queue and where that is.
func (p *Publisher) placed(dest string, err error) error {
	e, ok := errors.AsType[*longshore.Error](err)
	if !ok {
		return err
	}
	out := *e // one call's is that of all its messages
	at := &queueSource{b: p.b}
	if at.ref, err = p.near.near(dest); err != nil {
		return e
	}
	out.Op, out.Source = "publish to sqs queue "+quote(dest), dest
	if where, err := at.place(); err == nil && len(out.Fields) == 0 {
		out.Fields = where.where()
	}
	return &out
}

// refused is the error of one message that is not sent.
func refused(code longshore.Code, err error, hint string) error {
	return &longshore.Error{Code: code, Op: "publish to sqs", Err: err, Hint: hint}
}
