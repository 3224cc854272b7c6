package amqptest

import (
	"errors"
	"fmt"
)

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

func codeName(code uint16) string {
	switch code {
	case 311:
		return "CONTENT_TOO_LARGE"
	case codeNoRoute:
		return "NO_ROUTE"
	case 313:
		return "NO_CONSUMERS"
	case codeConnectionForced:
		return "CONNECTION_FORCED"
	case 402:
		return "INVALID_PATH"
	case codeAccessRefused:
		return "ACCESS_REFUSED"
	case codeNotFound:
		return "NOT_FOUND"
	case codeResourceLocked:
		return "RESOURCE_LOCKED"
	case codePreconditionFailed:
		return "PRECONDITION_FAILED"
	case codeFrameError:
		return "FRAME_ERROR"
	case codeSyntaxError:
		return "SYNTAX_ERROR"
	case codeCommandInvalid:
		return "COMMAND_INVALID"
	case codeChannelError:
		return "CHANNEL_ERROR"
	case codeUnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case 506:
		return "RESOURCE_ERROR"
	case codeNotAllowed:
		return "NOT_ALLOWED"
	case codeNotImplemented:
		return "NOT_IMPLEMENTED"
	case codeInternalError:
		return "INTERNAL_ERROR"
	}
	return ""
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
	if name := codeName(code); name != "" {
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
	re := asReply(err)
	return re != nil && re.code == codeNotFound
}

// asReply is the AMQP exception in err, nil when there is none.
func asReply(err error) *replyError {
	var re *replyError
	errors.As(err, &re)
	return re
}

func notImplemented(what string) error { return hardErr(codeNotImplemented, "%s", what) }

func noQueue(vhost, name string) error {
	return softErr(codeNotFound, "no queue '%s' in vhost '%s'", name, vhost)
}

func noExchange(vhost, name string) error {
	return softErr(codeNotFound, "no exchange '%s' in vhost '%s'", name, vhost)
}
