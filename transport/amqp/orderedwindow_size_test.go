package amqp

import "testing"

// F-N35: whatever the workers, nearly all instances have the same window, and all that
// their container can hold fits in.
func TestOrderedWindowIsTheSameForDifferentWorkers(t *testing.T) {
	for _, c := range []struct{ most, queues, want int }{
		{0, 1, 250}, {1, 1, 250}, {4, 1, 250}, {128, 1, 250}, {250, 1, 250},
		{251, 1, 1000}, {1000, 1, 1000}, {1001, 1, 4000}, {16000, 1, 16000}, {16001, 1, 65535}, {100000, 1, 65535},
		{250, 5, 250}, {1250, 5, 250}, {1251, 5, 1000},
		{4, 0, 250}, // a queue of its own
	} {
		if got := orderedWindow(c.most, c.queues); got != c.want {
			t.Errorf("%d deliveries of %d queues: a window of %d, want %d", c.most, c.queues, got, c.want)
		}
	}
}
