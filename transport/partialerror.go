package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
)

// PartialError says which messages of one Publish failed, by their index. The
// others are confirmed. An error with longshore.CodeMaybeSent is of a message of which
// nothing is known.
type PartialError struct {
	Failed map[int]error // by index in the call
	Total  int           // how many the call had
}

// Indexes returns the failed indexes, ascending.
func (e *PartialError) Indexes() []int {
	idx := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		idx = append(idx, i)
	}
	slices.Sort(idx)
	return idx
}

// Error names the first three.
func (e *PartialError) Error() string {
	var b strings.Builder
	unsure := 0
	for _, err := range e.Failed {
		if errors.Is(err, longshore.CodeMaybeSent) {
			unsure++
		}
	}
	switch not := len(e.Failed) - unsure; {
	case unsure == 0:
		fmt.Fprintf(&b, "longshore: %d of %d messages not published", not, e.Total)
	case not == 0:
		fmt.Fprintf(&b, "longshore: %d of %d messages may have been sent", unsure, e.Total)
	default:
		fmt.Fprintf(&b, "longshore: %d of %d messages not published, %d may have been sent", not, e.Total, unsure)
	}
	for n, i := range e.Indexes() {
		if n == 3 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; [%d] %s", i, strings.TrimPrefix(e.Failed[i].Error(), "longshore: "))
	}
	return b.String()
}

// Unwrap returns the errors in the order of their indexes.
func (e *PartialError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, i := range e.Indexes() {
		errs = append(errs, e.Failed[i])
	}
	return errs
}
