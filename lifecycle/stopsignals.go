package lifecycle

import "time"

// sameStop is how long after a signal that counted further ones mean the same request: a
// supervisor often signals a process and its group, and a terminal signals both `go run` and
// the program.
const sameStop = time.Second

// stopStep is what a signal asks for.
type stopStep uint8

const (
	stopSame   stopStep = iota // nothing new
	stopBegins                 // drain
	stopRushes                 // stop waiting for handlers
	stopNow                    // do not even wait for the report
)

// stopSignals decides what each SIGINT or SIGTERM asks for. Pure.
type stopSignals struct {
	counted stopStep  // how far the signals have gone
	last    time.Time // of the last signal that counted
}

func (s *stopSignals) next(now time.Time) stopStep {
	if s.counted != stopSame && now.Sub(s.last) < sameStop {
		return stopSame
	}
	s.counted, s.last = min(s.counted+1, stopNow), now
	return s.counted
}
