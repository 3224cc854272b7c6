package amqptest

import "fmt"

// Reply codes, as RabbitMQ uses them.
const (
	codeNoRoute            = 312
	codeConnectionForced   = 320
	codeAccessRefused      = 403
	codeNotFound           = 404
	codeResourceLocked     = 405
	codePreconditionFailed = 406
	codeFrameError         = 501
	codeSyntaxError        = 502
	codeCommandInvalid     = 503
	codeChannelError       = 504
	codeUnexpectedFrame    = 505
	codeNotAllowed         = 530
	codeNotImplemented     = 540
	codeInternalError      = 541
)

var codeNames = map[uint16]string{
	311: "CONTENT_TOO_LARGE", codeNoRoute: "NO_ROUTE", 313: "NO_CONSUMERS",
	codeConnectionForced: "CONNECTION_FORCED", 402: "INVALID_PATH",
	codeAccessRefused: "ACCESS_REFUSED", codeNotFound: "NOT_FOUND",
	codeResourceLocked: "RESOURCE_LOCKED", codePreconditionFailed: "PRECONDITION_FAILED",
	codeFrameError: "FRAME_ERROR", codeSyntaxError: "SYNTAX_ERROR",
	codeCommandInvalid: "COMMAND_INVALID", codeChannelError: "CHANNEL_ERROR",
	codeUnexpectedFrame: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR",
	codeNotAllowed: "NOT_ALLOWED", codeNotImplemented: "NOT_IMPLEMENTED",
	codeInternalError: "INTERNAL_ERROR",
}

// replyError is an AMQP exception: a hard one ends the connection, a soft one
// the channel.
type replyError struct {
	code   uint16
	text   string
	hard   bool
	method method
}

func (e *replyError) Error() string { return fmt.Sprintf("%d %s", e.code, e.text) }

func replyText(code uint16, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if name := codeNames[code]; name != "" {
		return name + " - " + text
	}
	return text
}

func softErr(code uint16, format string, args ...any) error {
	return &replyError{code: code, text: replyText(code, format, args...)}
}

func hardErr(code uint16, format string, args ...any) error {
	return &replyError{code: code, text: replyText(code, format, args...), hard: true}
}

func code404(err error) bool {
	re, ok := err.(*replyError)
	return ok && re.code == codeNotFound
}

func notImplemented(what string) error { return hardErr(codeNotImplemented, "%s", what) }

func noQueue(vhost, name string) error {
	return softErr(codeNotFound, "no queue '%s' in vhost '%s'", name, vhost)
}

func noExchange(vhost, name string) error {
	return softErr(codeNotFound, "no exchange '%s' in vhost '%s'", name, vhost)
}
