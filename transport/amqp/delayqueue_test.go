package amqp

import (
	"testing"
	"time"
)

// F-G05: rounded up, never by more than a second or 5 %, into few queues.
func TestDelaysAreRoundedUp(t *testing.T) {
	queues := map[string]bool{}
	for d := time.Millisecond; d < maxDelay; d = d*101/100 + time.Millisecond {
		r := roundDelay(d)
		if r < d || r%time.Second != 0 || r > max(d+time.Second, d*105/100+2*time.Second) {
			t.Fatalf("%s was rounded to %s", d, r)
		}
		queues[delayQueue("q", r)] = true
	}
	if len(queues) > 60+250 {
		t.Errorf("%d delay queues for all delays", len(queues))
	}
	if ms := (roundDelay(maxDelay) + delayGrace).Milliseconds(); ms >= 1<<32 {
		t.Errorf("the longest delay needs %d ms, the broker takes 32 bits", ms)
	}
}
