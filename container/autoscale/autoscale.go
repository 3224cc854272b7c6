// Package autoscale decides how many workers a container should have. A policy
// is a pure function of its own state and a sample that the container takes
// every 500 ms: it reads no clock and starts no goroutine.
//
//	cfg.Autoscale = autoscale.Adaptive{Hold: time.Minute} // the default, with a longer memory
package autoscale

import "time"

// Policy makes the state that one run of a container scales by. The value is
// configuration and may be shared by several containers.
type Policy interface {
	// Check returns what is wrong with the configuration; nil if nothing is.
	Check() error
	// New returns the state of one run.
	New() Scaler
}

// Scaler decides. It is called by one goroutine.
type Scaler interface {
	Next(s Sample) Decision
}

// Decision is how many workers there should be and why. The container clamps
// Target to [Min, Max].
type Decision struct {
	Target int
	Reason string // a short fixed phrase: "saturated", "idle"; empty when nothing changes
}

// Sample is what a container saw since the last one.
type Sample struct {
	Now time.Time
	Dt  time.Duration

	// Min and Max bound the workers; Workers is the target in force.
	Min, Max, Workers int

	// Busy is how many handler calls run now, BusySec their integral over Dt in
	// seconds, unfinished ones included.
	Busy    int
	BusySec float64

	// Completed counts messages, Execs handler calls that ended (they differ with
	// batches), Failed those of Execs that failed.
	Completed, Execs, Failed int
	// SumLog and SumLog2 are Σ ln and Σ ln² of the latencies of Execs, in seconds.
	SumLog, SumLog2 float64

	// Queued messages are here, could start, and have not: the transport's own
	// buffer counts, parked retries do not.
	Queued int
	// FullFrac is the share of Dt in which at least half of the lookahead waited.
	FullFrac float64

	// Backlog is the broker's count of waiting messages, BacklogAge the age of that
	// reading; negative: unknown.
	Backlog    int64
	BacklogAge time.Duration

	// Ceilings; -1 is none. Lanes counts those with something to run or running.
	Permits, Window, Lanes int

	// Paused: by an operator, recovering, draining or held. Nothing can be learnt.
	Paused bool

	// ActiveTripped and IdleTripped count workers past the triggers of a policy
	// that works by consecutive cycles; zero for others.
	ActiveTripped, IdleTripped int
}

// Fixed keeps the count where it is, within the bounds: Workers.Min at the start.
type Fixed struct{}

// Check finds nothing.
func (Fixed) Check() error { return nil }

// New returns the state, of which there is none.
func (f Fixed) New() Scaler { return f }

// Next returns the target in force.
func (Fixed) Next(s Sample) Decision { return Decision{Target: s.Workers} }
