package hops_test

import (
	"errors"
	"math"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// F-N07: what counts as a move, and what a foreign header may say.
func TestMovesAreCounted(t *testing.T) {
	death := func(reason string, count int64) any {
		return longshore.Headers{{Name: "queue", Value: "q"}, {Name: "reason", Value: reason}, {Name: "count", Value: count}}
	}
	for name, like := range map[string]struct {
		h    longshore.Headers
		want int64
	}{
		"none":       {nil, 0},
		"ours":       {longshore.Headers{{Name: hops.Header, Value: int64(3)}}, 3},
		"as text":    {longshore.Headers{{Name: hops.Header, Value: "3"}}, 3},
		"no number":  {longshore.Headers{{Name: hops.Header, Value: "many"}}, 0},
		"negative":   {longshore.Headers{{Name: hops.Header, Value: int64(-3)}}, 0},
		"the broker": {longshore.Headers{{Name: "x-death", Value: []any{death("rejected", 2), death("expired", 50), death("rejected", 1)}}}, 3},
		"both":       {longshore.Headers{{Name: hops.Header, Value: int64(3)}, {Name: "x-death", Value: []any{death("rejected", 2)}}}, 5},
		"malformed":  {longshore.Headers{{Name: "x-death", Value: []any{"x", nil, death("rejected", math.MinInt64)}}}, 0},
	} {
		if n := hops.Of(like.h); n != like.want {
			t.Errorf("%s: %d, want %d", name, n, like.want)
		}
		if err := hops.Check(like.h, 5, "MaxHops"); (err != nil) != (like.want >= 5) || err != nil && !errors.Is(err, longshore.CodeHops) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
