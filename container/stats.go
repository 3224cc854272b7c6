package container

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// counters are the sums of one run. Guarded by guard.mu.
type counters struct {
	received, redelivered int64                            // deliveries, and those of them that came again
	verdicts              [longshore.VerdictLost + 1]int64 // deliveries by what became of them
	lost                  int64                            // taken back by the broker
	stuck                 int64                            // handlers that were ever reported as stuck
	last                  time.Time                        // of the last receive that brought something
	delayed               delayed                          // given back with a delay: it waits at the broker
	vitals                vitals                           // how the handlers do
}

// State is what a container does.
type State string

// The states.
const (
	StateNew        State = "new"
	StateStarting   State = "starting"
	StateRunning    State = "running"
	StateRecovering State = "recovering" // running, but not subscribed
	StatePaused     State = "paused"
	StateDraining   State = "draining"
	StateStopped    State = "stopped"
)

// Stats is what a container did in its current or last run, and what it holds.
type Stats struct {
	Name      string    // of the container
	Transport string    // as "amqp" or "kafka"
	Source    string    // the queue or topic
	State     State     // what the container does
	Since     time.Time // start of the run

	// Live is false only when the container ended by itself. Ready is true while
	// deliveries flow or could. Reason says why not, or what a person should know though
	// it is ready, such as a pause; empty: nothing. It is Bottleneck.Text then.
	Live, Ready bool
	Reason      string
	// Bottleneck is what limits the container now.
	Bottleneck Bottleneck
	// HeldBy names the middlewares that hold the intake, as "breaker: ledger is down";
	// empty: none does.
	HeldBy string

	// Generation counts subscriptions; Subscribed is when the current one began.
	Generation int
	Subscribed time.Time // zero: it is not subscribed
	Standby    bool      // another consumer is the active one
	// NextAttempt is when it tries to subscribe again; zero: it is subscribed, tries now, or
	// does not want to. See [ListenerContainer.Reconnect].
	NextAttempt time.Time
	// ConsumerTag is the name that RabbitMQ lists its consumers under: NAME, NAME.2 and so
	// on. Empty: it is not subscribed, or the broker has no such names.
	ConsumerTag string

	Workers, Target, Min, Max int     // goroutines, how many the policy wants, and its bounds
	Scaling                   Scaling // what the policy did last
	Busy                      int     // handler calls that run now
	InFlight                  int     // deliveries held: running, ready, queued in lanes
	ReadyToStart              int     // waiting for a worker or a permit
	Queued                    int     // behind others of their lane
	Parked                    int     // waiting for a retry, with their followers
	Blocked                   int     // behind one whose handler does not return; takes no place in Window
	Buffered                  int     // in the transport, not yet handed out
	Window                    int     // how many may be in flight
	Lanes                     int     // keys or partitions of which something is held
	Bytes                     int64   // of bodies and keys that are held
	// HotShare is the largest share of the window that one lane holds.
	HotShare float64
	// Capacity is the share of worker time that was busy in the last tick, 0 to 1.
	Capacity float64
	// ConsumerCapacity is the share of the last 10 s in which a message would have been
	// started at once: 1 without traffic, 0 without a consumer and while all workers are
	// busy. Less than 1 means that more workers, more instances or faster handlers help.
	ConsumerCapacity float64
	// Permits and Rate are Throttle's limits; −1 = no limit.
	Permits int
	Rate    float64
	// Accepting is true while work may start: subscribed, not paused, held by a
	// middleware (a breaker that is open or on trial), draining or throttled to 0.
	// Without it more processes bring nothing, whatever the backlog is.
	Accepting bool

	Received, Redelivered, Lost int64 // deliveries in this run; Lost were taken back by the broker
	Acked, Retried, Rejected    int64 // deliveries by their verdict
	Discarded, Released         int64 // deliveries by their verdict
	// FailedBy are the failed calls by the code of the error; CodeHandler where it has none.
	FailedBy map[longshore.Code]int64
	// Handler is how long handlers take.
	Handler Calls
	// ReleasedBy are the releases that handlers and middlewares asked for, by the code of
	// the reason.
	ReleasedBy         map[longshore.Code]int64
	VerdictLost        int64                    // verdicts on deliveries that the broker had taken back
	DeadLetters        map[longshore.Code]int64 // messages given up, by the code of the reason
	DeadLetterFailures int64                    // moves to the dead-letter destination that failed
	SettleFailures     map[longshore.Code]int64 // settlements that the broker did not carry out, by code
	Reopens            map[longshore.Code]int64 // lost subscriptions, by code
	// Skipped counts how often messages were skipped, as EventSkipped tells.
	Skipped    map[transport.SkipReason]int64
	Stuck      int   // handlers that are stuck now
	StuckTotal int64 // that ever were
	// BlockedPartitions are the messages that hold their partitions back, on logs (Kafka): the
	// oldest that are not done, the longest first, at most 100.
	BlockedPartitions []transport.BlockedPartition

	// LastDelivery is when something was received last. Oldest is how long ago the oldest
	// delivery that is held was received, whatever it does: it runs, waits for a worker or
	// a retry, or is blocked. On a log it is also the age of the oldest message that is not
	// done.
	LastDelivery time.Time
	Oldest       time.Duration

	// Backlog is the broker's count of waiting messages, read at BacklogAt; zero
	// time: unknown.
	Backlog   int64
	BacklogAt time.Time
}

// Stats returns a snapshot.
func (c *ListenerContainer) Stats() Stats {
	s := c.situation()
	return s.diagnose()
}

func clone[K comparable](m map[K]int64) map[K]int64 {
	c := make(map[K]int64, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}
