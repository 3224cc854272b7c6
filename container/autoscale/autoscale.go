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
	Target int // how many workers there should be
	// Reason is a short fixed phrase for why the target changes; empty when it does not.
	Reason string
	// Limit names what keeps the target from growing now; empty: nothing does, or
	// nothing more is needed.
	Limit string
	// Knee is the count from which on more workers brought nothing; 0: none is known.
	Knee int
}

// The reasons of this package's policies.
const (
	Saturated = "saturated"           // all workers are busy and work waits
	Demand    = "demand"              // the load asks for more, saturation or not
	Idle      = "idle"                // the load asks for fewer
	FewerMay  = "ceiling"             // permits, window or bounds leave room for fewer
	KneeFound = "knee"                // the last growth brought too little and is undone
	KneeFalse = "knee was none"       // undoing it cost throughput: back up
	ProbeUp   = "probe up"            // does the knee still hold?
	ProbeDown = "probe down"          // is it lower by now?
	ProbeBack = "probe undone"        // the probe showed that it holds
	Failing   = "growth made it fail" // a growth after which more calls failed is undone
)

// The limits of this package's policies.
const (
	LimitMax     = "max"
	LimitPermits = "permits"
	LimitWindow  = "window"
	LimitRate    = "rate"    // of the throttle
	LimitLanes   = "lanes"   // nothing else could run beside what runs
	LimitKnee    = "knee"    // of the downstream
	LimitJudging = "judging" // the last growth is being measured
	LimitStalled = "stalled" // calls run and none ends
	LimitFailing = "failing" // nearly every call fails
	LimitPace    = "pace"    // the policy's own interval between steps
	LimitPaused  = "paused"  // nothing can be learnt
)

// Cycler is a Policy that works by consecutive cycles. A cycle is one attempt of a
// worker to get work: active when work was waiting, idle when there was none for
// the whole of Cycles.Wait. The container counts them and tells in the sample how
// many workers have passed the triggers.
type Cycler interface {
	Policy
	Cycles() Cycles
}

// Cycles is what to count for a [Cycler].
type Cycles struct {
	// Active and Idle are passed by one more than this many cycles in a row.
	Active, Idle int
	// Wait without work is one idle cycle.
	Wait time.Duration
	// Batch counts by the rule of [Spring]: each worker counts its own cycles, of so many
	// messages, and work goes to the one that has waited longest. 0: by that of [Consecutive].
	Batch int
}

// Sample is what a container saw since the last one.
type Sample struct {
	Now time.Time     // the end of the tick
	Dt  time.Duration // how long the tick was

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

	// Ceilings; -1 is none. Window is how many workers the bytes that may be held are
	// enough for. Lanes counts those with something to run or running.
	Permits, Window, Lanes int
	// Rate is how many calls may start per second; 0 or less: as many as can.
	Rate float64

	// Paused: by an operator, recovering, draining or held. Nothing can be learnt.
	Paused bool

	// ActiveTripped and IdleTripped count the workers that passed a trigger since
	// the last sample; only for a [Cycler].
	ActiveTripped, IdleTripped int
}
