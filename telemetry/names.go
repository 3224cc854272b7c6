package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore"
)

// Codes and destinations may come from anywhere: a handler makes codes of its own, and
// replies go to as many queues as there are clients. Each is a series that stays, so from
// here on they share one.
const (
	mostCodes        = 100
	mostDestinations = 500
	otherName        = "_OTHER" // of the semantic conventions, for errors
)

// names are the first different values of a label.
type names struct {
	most int64
	seen sync.Map
	n    atomic.Int64
}

// errorCodes are the codes of errors. Those of ours that a message or a call can end with
// keep their names, however many a handler has made before.
func errorCodes() *names {
	s := &names{most: mostCodes}
	for _, c := range []longshore.Code{longshore.CodePanic, longshore.CodeHandler, longshore.CodeUndecodable, longshore.CodeTombstone, longshore.CodeBusy, longshore.CodeNoHandler, longshore.CodeTooLarge, longshore.CodeTimeout,
		longshore.CodeUnreachable, longshore.CodeMaybeSent, longshore.CodeConnLost, longshore.CodeAuth, longshore.CodeForbidden, longshore.CodeNotFound, longshore.CodeBlocked, longshore.CodeRefused,
		longshore.CodeUnroutable, longshore.CodeReturned, longshore.CodeSettle, longshore.CodeLeaseLost, longshore.CodeFenced, longshore.CodeAckTimeout, longshore.CodeState, longshore.CodeInternal} {
		s.seen.Store(string(c), true)
	}
	return s
}

// of is the name, or otherName where there are too many; none stays none. Several who
// come at once may make it a few more.
func (s *names) of(name string) string {
	if name == "" {
		return ""
	}
	if _, ok := s.seen.Load(name); ok {
		return name
	}
	if s.n.Load() >= s.most {
		return otherName
	}
	name = strings.Clone(name) // or the message that it was cut from would stay
	if _, ok := s.seen.LoadOrStore(name, true); !ok {
		s.n.Add(1)
	}
	return name
}
