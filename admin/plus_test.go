package admin

import (
	"math"
	"testing"

	"github.com/longshore-go/longshore/middleware/throttle"
)

// F-N29: the ends of the numbers are ends, and not the other end.
func TestAddingTheLargestNumberSaturates(t *testing.T) {
	for _, c := range []struct{ n, add, want int }{{5, math.MaxInt, math.MaxInt}, {math.MaxInt, 1, math.MaxInt}, {5, math.MinInt, 0}, {0, math.MinInt, 0}, {5, -2, 3}} {
		got := plus(c.n, c.add)
		if got != c.want {
			t.Errorf("%d and %d are %d, want %d", c.n, c.add, got, c.want)
		}
		l := throttle.NewPermits(5)
		l.Override(throttle.Override{Permits: &got})
		if permits, _ := l.Limits(); permits != c.want {
			t.Errorf("%d in force, want %d", permits, c.want)
		}
	}
}
