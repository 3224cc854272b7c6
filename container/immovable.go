package container

import (
	"fmt"

	"github.com/longshore-go/longshore"
)

// immovable tells whether a dead-letter place that answers like this will answer the same
// to the next try: the message is what it refuses.
func immovable(err error) bool {
	switch longshore.CodeOf(err) { //nolint:exhaustive // all others may pass
	case longshore.CodeTooLarge, longshore.CodeBadHeader, longshore.CodeUnsupported, longshore.CodeHops:
		return true
	}
	return false
}

// unmovable counts the messages that their dead-letter place refuses for good, and returns
// what it said of one. They are tried again all the same, since its limit may be raised.
// The caller holds mu.
func (r *engine) unmovable() (n int, why error) {
	for t := range r.sched.Begun() {
		it := t.Of
		if it.dead == nil || !immovable(it.dead.failed) {
			continue
		}
		if n++; why == nil {
			why = it.dead.failed
		}
	}
	return n, why
}

// unmovableText is the reason of a container that holds such messages.
func (r *engine) unmovableText() string {
	n, why := r.unmovable()
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 message cannot be moved to its dead-letter place %q: %v", r.s.dead.To, why)
	}
	return fmt.Sprintf("%d messages cannot be moved to their dead-letter place %q: %v", n, r.s.dead.To, why)
}
