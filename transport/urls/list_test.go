package urls

import (
	"slices"
	"testing"
)

// F-N22: a comma in an item is percent-encoded, and what is encoded separates nothing.
func TestListsAreSplitBeforeTheyAreDecoded(t *testing.T) {
	for query, want := range map[string][]string{
		"keys=a,b":              {"a", "b"},
		"keys=a%2Cb":            {"a,b"},
		"keys=a%2cb,c":          {"a,b", "c"},
		"keys=%22a%2Cb%22,c+d":  {`"a,b"`, "c d"},
		"keys=a%2Bb%26c%3Dd":    {"a+b&c=d"},
		"keys=a%252Cb":          {"a%2Cb"},
		"keys=":                 {""},
		"x=1&k%65ys=a%2Cb&y=,,": {"a,b"},
		"other=a,b":             nil,
	} {
		s := scheme{names: []string{"amqp"}, params: []string{"keys", "x", "y", "other"}}
		a, err := s.read("amqp", "h/v?"+query)
		if err != nil {
			t.Fatal(query, err)
		}
		if got := a.list("keys"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if a.values.Has("keys") {
			t.Errorf("%s: it was not taken", query)
		}
	}
}
