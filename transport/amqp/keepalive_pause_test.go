package amqp

import (
	"testing"
	"time"
)

// F-N16: queues are declared often while nothing is known, and seldom once a queue has
// survived longer pauses.
func TestPauseBetweenDeclarationsFollowsTheTest(t *testing.T) {
	e := expiryTest{gap: keepFirst}
	var pauses []time.Duration
	for range 9 {
		pauses = append(pauses, e.pause())
		if e.proven > 0 && e.pause() > max(keepFirst, e.proven/2) {
			t.Errorf("declared every %s, survived is %s", e.pause(), e.proven)
		}
		e = e.survived()
	}
	if last := pauses[len(pauses)-1]; pauses[0] != keepFirst || last != keepMost/2 {
		t.Errorf("pauses %v", pauses)
	}
	e.failed = true
	if e.pause() != keepFirst {
		t.Errorf("where queues expire they are declared every %s", e.pause())
	}
}
