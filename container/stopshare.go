package container

import "time"

// leastGrace is what handlers leave of a short stop for cancelling, flushing and closing.
const leastGrace = 500 * time.Millisecond

// handlersShare is how long a stop of which only left remains may wait for running
// handlers. DrainTimeout and CancelGrace share a short time in proportion: a grace that
// was kept whole would cut handlers although most of it is seldom used.
func handlersShare(left, drain, grace time.Duration) time.Duration {
	switch {
	case left <= 0:
		return 0
	case left >= drain+grace:
		return drain
	}
	kept := time.Duration(float64(left) * float64(grace) / float64(drain+grace))
	return left - min(max(kept, leastGrace), grace, left/2)
}
