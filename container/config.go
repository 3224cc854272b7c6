package container

import (
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
)

// Config is how a container works. The zero value of every field is a good
// default, named at the field.
type Config struct {
	// Name appears in logs, metrics and errors. Zero: the source's name.
	Name string

	// Workers bounds the handler calls that run at once. Zero: 1 to 10.
	Workers Workers
	// Autoscale moves the count between Workers.Min and Max. nil: autoscale.Adaptive{}.
	Autoscale autoscale.Policy
	// Lookahead is how many deliveries are held beyond the workers. Zero: as many
	// as workers, at least 8 (with batches: one batch more). −1: none.
	Lookahead int
	// MaxBytes stops the intake while the bodies held are larger in sum; one
	// larger message alone is let through. Parked retries have as much of their own.
	// Zero: 64 MiB.
	MaxBytes int64
	// Order says which deliveries must be handled one after the other. nil: ByKey
	// where producers give the broker a key for it (Kafka, SQS FIFO), else Unordered.
	Order Order

	// Redelivery is what happens after a handler failed.
	Redelivery Redelivery
	// DeadLetter is what happens after it failed for the last time.
	DeadLetter DeadLetter
	// Deletion is one word in place of Redelivery.MaxAttempts, DeadLetter and Settle. Zero:
	// those decide.
	Deletion Deletion

	// Throttle is asked for a permit before a worker takes a delivery. nil: no limit.
	Throttle Gate
	// Middleware wraps the handler, the first one outermost.
	Middleware []longshore.Middleware

	// Settle says who settles. Zero: Auto.
	Settle Settle
	// Batch is for NewBatch only.
	Batch Batch
	// Stuck says what to do about handlers that do not return.
	Stuck Stuck

	// DrainTimeout is how long Stop waits for running handlers before it cancels
	// their contexts. Zero: 20 s. −1: not at all.
	DrainTimeout time.Duration
	// CancelGrace is the time after that: for handlers to return, for settlements
	// to be flushed and the consumer to be closed. Where all handlers have returned in
	// time the latter two have 5 s, if that is more and the time of both allows. Zero: 2 s.
	CancelGrace time.Duration
	// Reopen spaces the attempts to subscribe again. Zero: 250 ms, doubled up to
	// 30 s, ± 20 %.
	Reopen Backoff
	// StartPaused connects, declares and checks, and takes nothing from the broker until
	// Resume. A transport that cannot open without taking something (see
	// Capabilities.OpensPaused) is opened then.
	StartPaused bool
	// WaitForBroker makes Start wait, as long as its context allows, for a broker
	// that cannot be reached. Otherwise Start returns and the container goes on
	// trying, live but not ready.
	WaitForBroker bool

	// Logger gets everything: at Info the start, what was declared, subscriptions,
	// recoveries and the drain. What repeats within a minute is one line with its
	// number, at the latest when the container has drained. nil: on stderr a line at the
	// start and at the end, with warnings, errors and their all-clear between; zap.NewNop()
	// is silence, logging.Slog takes a slog logger.
	Logger *zap.Logger
	// Clock is for tests. nil: the system's.
	Clock longshore.Clock
	// OnEvent is called for every event, in order, from one goroutine. When it
	// is 256 events behind, events are dropped and counted.
	OnEvent func(Event)
}

// Workers bounds handler calls. Zero: {1, 10}. Min zero: 1. Max zero: 10, or Min
// if that is more. {Max: 1} is serial.
type Workers struct {
	Min, Max int // the target moves between them
}

// Backoff spaces attempts exponentially. Zero fields take the defaults of the
// field it is used in.
type Backoff struct {
	// Every is a fixed delay, in place of the other fields.
	Every time.Duration
	// Initial is the delay after the first failure.
	Initial time.Duration
	// Max is the longest delay, jitter included.
	Max time.Duration
	// Multiplier is at least 1. Zero: 2.
	Multiplier float64
	// Jitter is the share by which a delay varies, up to 1. Zero: 0.2. −1: none.
	Jitter float64
}

// Redelivery is the policy for errors without a verdict of their own.
type Redelivery struct {
	// MaxAttempts is how often a handler sees a message before DeadLetter applies.
	// Zero: 5. 1: no retries.
	MaxAttempts int
	// Backoff is the delay before the next attempt. Zero: 1 s, doubled up to 5 min, ± 20 %.
	Backoff Backoff
	// Classify maps an error to a verdict (longshore.Retry, Reject, Discard,
	// Release around it). nil, or an error without a verdict, means the policy.
	Classify func(error) error
	// Parked bounds the retries that wait here. Zero: 16 × (workers + lookahead).
	Parked int
}

// Policy is what happens to a message that failed for the last time.
type Policy uint8

const (
	// Default is Native where the broker's dead-letter destination is known to exist, else
	// Keep with a warning at start; a Kafka source refuses it.
	Default Policy = iota
	// DeadLetterNative leaves it to the broker: dead-letter exchange, redrive policy.
	DeadLetterNative
	// DeadLetterKeep tries again at Backoff.Max for ever.
	DeadLetterKeep
	// DeadLetterDiscard acks, with a log line and a counter. The message is gone.
	DeadLetterDiscard
)

// DeadLetter says where messages go that failed for the last time or were
// rejected.
type DeadLetter struct {
	// To is the destination to publish to, confirmed before the message is acked.
	To string
	// Via publishes. nil: a publisher on the source's own broker.
	Via transport.Publisher
	// MaxHops is how often a message may have been moved to a dead-letter destination, or put
	// back from one, before it stays here with its reason: so that dead letters of containers
	// that feed each other do not go round for ever. Zero: 8.
	MaxHops int
	// Policy is for containers without To.
	Policy Policy
}

// Settle says who settles deliveries.
type Settle uint8

const (
	// SettleAuto: the container, by the handler's result.
	SettleAuto Settle = iota
	// SettleManual: the handler, with d.Ack, d.Nack or d.Reject, when and where it
	// likes. Slot, lane and context last until then. An error settles as in Auto. A Nack
	// counts towards Redelivery.MaxAttempts in both.
	SettleManual
)

// Batch is how NewBatch gathers deliveries.
type Batch struct {
	// Size is the most deliveries of one call. Zero: 100.
	Size int
	// Linger is how long the first one waits for others. Zero: 50 ms. −1: not at all.
	Linger time.Duration
}

// StuckAction says what to do about a stuck handler.
type StuckAction uint8

const (
	// StuckWait leaves its worker to it.
	StuckWait StuckAction = iota
	// StuckReplace starts another worker in its place. Its lane stays shut.
	StuckReplace
)

// Stuck is about handlers that do not return.
type Stuck struct {
	// After is the age at which a running handler is reported, with its stack.
	// Zero: 5 min. −1: never.
	After time.Duration
	// Action is what is done then.
	Action StuckAction
}
