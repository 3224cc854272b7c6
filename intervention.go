package longshore

import "time"

// Intervention is a restriction that a person, a fleet or the configuration has put on a
// container: a pause or a limit.
type Intervention struct {
	By     string    // who; "" if that is not known
	Reason string    // why, in the words of By
	Since  time.Time // zero: not known
	Until  time.Time // when it ends by itself; zero: never
	Fleet  bool      // it holds for a whole fleet and is cleared there
}

// Intervened is a limiter, or another part of a container, that can say which
// intervention is in force; ok is false if none is.
type Intervened interface {
	Intervention() (i Intervention, ok bool)
}
