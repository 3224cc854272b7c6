package transport

import (
	"errors"

	"github.com/longshore-go/longshore"
)

// MaybeSent is the error of a publish whose outcome is unknown: something was sent, and no
// answer came. cause says why, and keeps its own code: errors.Is finds both. An error that
// says so already is returned as it is.
//
// Every publisher uses it, so that callers know one word: [longshore.CodeMaybeSent]. What
// was certainly not sent must not have it.
func MaybeSent(op, source string, cause error) error {
	if errors.Is(cause, longshore.CodeMaybeSent) {
		return cause
	}
	return &longshore.Error{Code: longshore.CodeMaybeSent, Op: op + " may have been sent", Source: source, Err: cause,
		Fields: longshore.FieldsOf(cause), Hint: "publish it again with the same id, which lets consumers recognize a copy"}
}
