package throttle

import "time"

// Skew sets the clock of a fleet's instance that is not yet started.
func Skew(f *Fleet, by time.Duration) { f.now = func() time.Time { return time.Now().Add(by) } }
