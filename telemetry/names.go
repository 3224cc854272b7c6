package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"
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

// of is the name, or otherName where there are too many. Several who come at once may
// make it a few more.
func (s *names) of(name string) string {
	if _, ok := s.seen.Load(name); ok {
		return name
	}
	if s.n.Load() >= s.most {
		return otherName
	}
	name = strings.Clone(name) // or the message that it was cut from would stay
	if _, ok := s.seen.LoadOrStore(name, struct{}{}); !ok {
		s.n.Add(1)
	}
	return name
}
