package clock

import (
	"time"

	"github.com/longshore-go/longshore"
)

// System is the system's clock.
type System struct{}

// Now returns time.Now.
func (System) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (System) AfterFunc(d time.Duration, f func()) longshore.Timer { return time.AfterFunc(d, f) }

// Or returns c, or the system's clock if c is nil.
func Or(c longshore.Clock) longshore.Clock {
	if c == nil {
		return System{}
	}
	return c
}
