package transport

import (
	"time"

	"github.com/longshore-go/longshore"
)

// Operations hears how long calls at a broker took. The zero value hears nothing, and
// no clock is read for it.
type Operations struct {
	To longshore.OperationObserver
}

// Begin is the time before a call.
func (o Operations) Begin() (t time.Time) {
	if o.To != nil {
		t = time.Now()
	}
	return t
}

// End tells of a call that began then and is over; code is that of its failure. To is
// called on the caller's goroutine.
func (o Operations) End(kind longshore.OperationKind, began time.Time, code longshore.Code) {
	if o.To != nil {
		o.To.Operation(longshore.Operation{Kind: kind, Took: time.Since(began), Code: code})
	}
}
