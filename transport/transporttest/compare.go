package transporttest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

func headerDifferences(want, got longshore.Headers) []string {
	var own longshore.Headers
	for _, h := range got {
		if !strings.HasPrefix(h.Name, "longshore-") {
			own = append(own, h)
		}
	}
	if len(own) != len(want) {
		return []string{fmt.Sprintf("headers are %v, want %v", own, want)}
	}
	for i := range want {
		if want[i].Name != own[i].Name {
			return []string{fmt.Sprintf("header %d is %q, want %q: the order must be kept", i, own[i].Name, want[i].Name)}
		}
		if !sameValue(want[i].Value, own[i].Value) {
			return []string{fmt.Sprintf("header %q is %T %#v, want %T %#v", want[i].Name, own[i].Value, own[i].Value, want[i].Value, want[i].Value)}
		}
	}
	return nil
}

// sameValue compares by kind: texts with texts, bytes with bytes, integers with
// integers of any size, floats with floats of any size.
func sameValue(want, got any) bool {
	switch w := want.(type) {
	case []byte:
		g, ok := got.([]byte)
		return ok && string(w) == string(g)
	case time.Time:
		g, ok := got.(time.Time)
		return ok && w.Equal(g)
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !sameValue(w[i], g[i]) {
				return false
			}
		}
		return true
	case longshore.Headers:
		g, ok := got.(longshore.Headers)
		return ok && len(w) == len(g) && len(headerDifferences(w, g)) == 0
	}
	if w, ok := integer(want); ok {
		g, ok := integer(got)
		return ok && w == g
	}
	if w, ok := float(want); ok {
		g, ok := float(got)
		return ok && (w == g || math.IsNaN(w) && math.IsNaN(g))
	}
	return want == got
}

func integer(v any) (string, bool) {
	switch v.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
