package container

import "time"

// Gate limits how many handler calls run, or start per second. It is asked
// before a worker takes a delivery, so what is held back occupies no worker, costs
// no attempt and is, beyond a handful, not even received.
//
// It never blocks. Implementations are safe for concurrent use.
type Gate interface {
	// TryAcquire takes a permit if there is one now. If not, again is when to ask
	// next; zero: after the next call of Watch's function.
	TryAcquire(now time.Time) (ok bool, again time.Time)
	// Release gives a permit back, once for each that was taken.
	Release()
	// Limits returns the permits in force and the starts per second; negative is no limit.
	Limits() (permits int, rate float64)
	// Watch calls changed whenever TryAcquire may have another answer; changed does
	// not block. stop ends it.
	Watch(changed func()) (stop func())
}
