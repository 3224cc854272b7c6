package transport

import "github.com/longshore-go/longshore"

// Permanent reports whether a publisher that answers with err will answer the same to the next
// try, because the message is what it refuses: too large, a header it cannot carry, a property
// the broker does not have. longshore.CodeRefused is not among them, since a full queue
// refuses as well.
func Permanent(err error) bool {
	switch longshore.CodeOf(err) { //nolint:exhaustive // all others may pass
	case longshore.CodeTooLarge, longshore.CodeBadHeader, longshore.CodeUnsupported:
		return true
	}
	return false
}
