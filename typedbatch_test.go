package longshore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
)

func bodies(texts ...string) []*longshore.Delivery {
	ds := make([]*longshore.Delivery, len(texts))
	for i, text := range texts {
		ds[i] = &longshore.Delivery{Message: longshore.Message{Body: []byte(text)}}
	}
	return ds
}

// What does not decode is rejected, the others are handled, and errors return to the
// indexes of the whole batch.
func TestTypedBatch(t *testing.T) {
	oops := errors.New("oops")
	type order struct{ ID int }
	for name, tc := range map[string]struct {
		in     []string
		answer error
		runs   int
		failed map[int]longshore.Verdict // of each index that failed
	}{
		"all good":           {[]string{`{"ID":1}`, `{"ID":2}`}, nil, 2, nil},
		"one is garbage":     {[]string{`{"ID":1}`, `x`, `{"ID":3}`}, nil, 2, map[int]longshore.Verdict{1: longshore.VerdictReject}},
		"its error is moved": {[]string{`x`, `{"ID":1}`, `{"ID":3}`}, longshore.BatchError{1: oops}, 2, map[int]longshore.Verdict{0: longshore.VerdictReject, 2: longshore.VerdictNone}},
		"one error for all":  {[]string{`x`, `{"ID":1}`, `{"ID":3}`}, oops, 2, map[int]longshore.Verdict{0: longshore.VerdictReject, 1: longshore.VerdictNone, 2: longshore.VerdictNone}},
		"nothing is left":    {[]string{`x`, `y`}, oops, 0, map[int]longshore.Verdict{0: longshore.VerdictReject, 1: longshore.VerdictReject}},
	} {
		ran := 0
		err := longshore.TypedBatch(longshore.JSON{}, func(_ context.Context, vs []order, ds []*longshore.Delivery) error {
			ran = len(vs)
			for i, v := range vs {
				if !strings.Contains(string(ds[i].Body), fmt.Sprint(v.ID)) {
					t.Errorf("%s: %v is not %s", name, v, ds[i].Body)
				}
			}
			return tc.answer
		})(t.Context(), bodies(tc.in...))
		failed, _ := errors.AsType[longshore.BatchError](err)
		if ran != tc.runs || len(failed) != len(tc.failed) {
			t.Errorf("%s: %d handled, %v", name, ran, err)
		}
		for i, want := range tc.failed {
			if got, _ := longshore.VerdictOf(failed[i]); failed[i] == nil || got != want {
				t.Errorf("%s: [%d] %v", name, i, failed[i])
			}
		}
	}
	err := longshore.TypedBatch(longshore.Raw{}, func(context.Context, []string, []*longshore.Delivery) error { return longshore.BatchError{5: oops} })(t.Context(), bodies("a"))
	if _, partial := errors.AsType[longshore.BatchError](err); partial || !errors.Is(err, oops) {
		t.Errorf("an index that is none: %v", err)
	}
}
