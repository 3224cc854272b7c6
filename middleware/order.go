package middleware

import (
	"fmt"

	"github.com/longshore-go/longshore"
)

const (
	nameRecover = "recover"
	nameTimeout = "timeout"
	nameLog     = "log"
	nameDecode  = "decode"
	nameDedupe  = "dedupe"
	nameShadow  = "shadow"
)

// rule says that outer must come before inner in a list.
type rule struct{ outer, inner, why string }

func rules() []rule {
	return []rule{
		{nameRecover, "mutex", "a panic in the mutex itself would not be recovered"},
		{nameDecode, "mutex", "a body that does not decode would hold a row and a connection for it"},
		{nameDedupe, "mutex", "what was done a moment ago would cost a transaction"},
		{"throttle", "mutex", "a transaction would be open while it waits for a permit"},
		{nameTimeout, "mutex", "the transaction would outlive the limit"},
		{nameDecode, nameShadow, "the second handler would get the encoded body"},
		{nameDecode, nameDedupe, "a message that cannot be decoded would be remembered as seen"},
		{"trace", nameLog, "the line would not carry the trace"},
	}
}

// Validate returns one sentence for each order in the list that is known to be
// wrong, none if there is nothing to say. It knows middlewares by their names
// ([longshore.Named]); those without one are not looked at.
func Validate(mws ...longshore.Middleware) []string {
	at := map[string]int{}
	for i, m := range mws {
		n, ok := m.(longshore.Named)
		if !ok {
			continue
		}
		if _, twice := at[n.Name()]; !twice {
			at[n.Name()] = i
		}
	}
	var out []string
	for _, r := range rules() {
		outer, hasOuter := at[r.outer]
		inner, hasInner := at[r.inner]
		if hasOuter && hasInner && outer > inner {
			out = append(out, fmt.Sprintf("middleware %q comes after %q: %s", r.outer, r.inner, r.why))
		}
	}
	return out
}
