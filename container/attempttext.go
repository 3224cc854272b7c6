package container

import (
	"fmt"
	"math"
)

// attemptText is a delivery's attempt for people. A message that was redelivered without
// having failed, or that stays because it cannot be moved, goes beyond the limit.
func attemptText(n, of int) string {
	if of <= 0 || n > of {
		return fmt.Sprintf("attempt %d", n)
	}
	return fmt.Sprintf("attempt %d of %d", n, of)
}

// lastAttempt is the attempt after which a message is given up; 0: none is.
func (s *settings) lastAttempt() int {
	if s.attempts == math.MaxInt32 {
		return 0
	}
	return s.attempts
}
