package container

import "testing"

func TestAnAttemptBeyondTheLimitIsNotOneOfThem(t *testing.T) {
	for _, c := range []struct {
		n, of int
		want  string
	}{{1, 3, "attempt 1 of 3"}, {3, 3, "attempt 3 of 3"}, {14, 3, "attempt 14"}, {2, 0, "attempt 2"}} {
		if got := attemptText(c.n, c.of); got != c.want {
			t.Errorf("%d of %d: %q", c.n, c.of, got)
		}
	}
}
