package edit_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/edit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"queue", "queue", 0}, {"qeue", "queue", 1}, {"queeu", "queue", 2}, {"kitten", "sitting", 3}} {
		if got, back := edit.Distance(c.a, c.b), edit.Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q to %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
