package transport

import (
	"context"

	"github.com/longshore-go/longshore"
)

// Capabilities is what a source or an open consumer can do.
type Capabilities = longshore.Capabilities

// Source is a place to consume from. It is a value: making one does no I/O.
type Source interface {
	// Open connects, declares and subscribes, in this order. It returns an
	// *longshore.Error when that fails and does not retry. ctx bounds the opening
	// only. A source can be opened again after its consumer was closed, and by
	// several consumers at once.
	Open(ctx context.Context, opts OpenOptions) (Consumer, error)
	// Capabilities is what is known without a connection. An open consumer may
	// know better: see [CapabilityReporter].
	Capabilities() Capabilities
}

// OpenOptions is what a container tells a source. The zero value works.
type OpenOptions struct {
	// Base is the parent of all delivery contexts; nil means context.Background().
	// It outlives Open's ctx and is cancelled with longshore.ErrStopping as its
	// cause when a drain runs out of time.
	Base context.Context //nolint:containedctx // the parent of contexts made later, by design
	// Observer hears what happens outside of calls; nil means no observer.
	Observer Observer
	// Operations hears how long calls at the broker took; zero means no observer.
	Operations Operations
	// Window is how many deliveries the container wants to hold now, MaxWindow
	// how many at the most; 0 leaves it to the transport.
	Window, MaxWindow int
	// Workers is how many workers the container has now, MaxWorkers how many at the most; 0
	// is one. A source with a consumer per worker opens as many (see WorkerFollower).
	Workers, MaxWorkers int
	// Ordered: deliveries are handled one after the other by key or partition. A
	// source that could consume in several parts then uses one, so that what comes
	// back after a loss comes back in its order too.
	Ordered bool
	// Batch is how many deliveries a handler takes at once; 0 is one. A batch may
	// hold several of one key, so a source that hands out only the first of each
	// does not.
	Batch int
	// Paused: work may not start now. With Capabilities.OpensPaused the source connects,
	// declares and checks everything, and takes nothing until Pauser.Resume: where a
	// subscription alone takes messages or a role it subscribes then, elsewhere at once.
	Paused bool
	// DeadLetter is the container's dead-letter destination, to be declared with
	// the source where the source declares anything. Empty: none.
	DeadLetter string
	// Native: the container leaves messages that failed for the last time to the
	// broker's own dead-letter destination, so there has to be one.
	Native bool
}

// Consumer is an open subscription. Receive has one caller at a time; all other
// methods may be called from any goroutine, also while Receive waits.
type Consumer interface {
	// Receive waits for at least one delivery and returns at most max. The slice
	// is valid until the next call. A cancelled ctx returns ctx's error and
	// loses nothing; what is ready comes first.
	// Errors: longshore.ErrCanceled after Cancel once the buffer is empty,
	// longshore.ErrClosed after Close, ctx.Err(), or an *longshore.Error that says
	// why this consumer is at its end.
	Receive(ctx context.Context, max int) ([]*longshore.Delivery, error)
	// Cancel asks the broker to send no more and waits for its confirmation.
	// What was received stays settleable, and Receive hands out buffered deliveries.
	Cancel(ctx context.Context) error
	// Release gives back to the broker what Receive has not handed out. It is
	// called after Cancel.
	Release(ctx context.Context) error
	// Flush returns when every settlement accepted so far is confirmed by the
	// broker, or reported to the observer; an error if any was not confirmed.
	Flush(ctx context.Context) error
	// Close ends the consumer. Unsettled deliveries go back to the broker and
	// are lost here. Idempotent; it returns within ctx's time also when the broker
	// does not answer.
	Close(ctx context.Context) error
}

// Publisher sends messages. It is safe for concurrent use.
type Publisher interface {
	// Publish returns after the broker has confirmed all messages. An error
	// is a *PartialError that names those that failed, an *longshore.Error if none
	// was sent, or ctx's error; after that the outcome of those not named is open. A
	// message that may have been sent has an error made by MaybeSent, and all copies
	// that a publisher makes of one message have one longshore.Identity.
	Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error
	Close(ctx context.Context) error
}

// Observer hears what happens to a consumer outside of calls. Its methods are
// called from the transport's goroutines, must not block and must not call the
// consumer.
type Observer interface {
	// Lost: the broker has taken these deliveries back, and each of them knows it already
	// (Delivery.Lose). Where the source keeps an order, the later deliveries of the same key
	// or partition must be lost with the first one, or must not have been handed out yet:
	// otherwise they overtake it.
	Lost(ds []*longshore.Delivery, cause error)
	// SettleFailed: an accepted settlement was not carried out.
	SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error)
	// Down: the consumer is at its end, Receive would return err. It is called
	// once, also when no call of Receive waits, and not after Cancel or Close were
	// called by us.
	Down(err error)
	// Event is anything else worth a line in the log.
	Event(e Event)
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string // of the partition
	Partition int32  // its number
}

// Event is something that happened to a consumer which needs no action of the
// container.
type Event struct {
	Kind EventKind // decides how it is reported
	Text string    // one line for the log
	Err  error     // may be nil
	// Condition names a state that lasts, such as polls that fail. A notice that has one
	// begins or repeats it, and EventCleared with the same Condition ends it; a new
	// subscription ends all of them.
	Condition string
	// Skipped says why, with EventSkipped.
	Skipped SkipReason
	// Repeats is how many messages are settled here and will be handled again all the
	// same, because the broker could not be given all of it. The drain report counts them.
	Repeats int
}

// SkipReason is why messages were skipped, a label of metrics.
type SkipReason string

// The reasons.
const (
	SkippedExpired   SkipReason = "expired"   // retention had deleted them before they were read
	SkippedTruncated SkipReason = "truncated" // the log ends before the position: cut off, or made again
	SkippedGivenUp   SkipReason = "given_up"  // the broker delivered them as often as it may, and gave up on them
)

// EventKind distinguishes kinds of [Event].
type EventKind uint8

// The kinds.
const (
	EventNotice    EventKind = iota // see Text
	EventBlocked                    // the broker blocks publishers
	EventUnblocked                  // and no longer does
	EventStandby                    // subscribed, but another consumer is the active one
	EventActive                     // now the active one
	EventSkipped                    // messages were skipped (see SkipReason); see Text
	EventDeclared                   // queues, topics or exchanges were created, or found as wanted; see Text
	EventCleared                    // a Condition that notices have reported is over; see Text
	EventConsumer                   // a consumer was added or cancelled, as the workers changed; see Text
)

// Description names a source for logs, metrics and errors.
type Description struct {
	Transport string // "rabbitmq", "kafka", "aws_sqs", "memory"
	Kind      string // "queue", "group", "broadcast"
	Name      string // what users call it: "orders"
	Address   string // host and port, never credentials
	// Place is the kind of thing that holds the messages, where it is not Kind: a Kafka
	// group reads a "topic".
	Place string
	// InProcess: the source lives and ends with this process, so a command cannot reach
	// the one of a service.
	InProcess bool
	// Approximate: the broker's counts are estimates, so a count of 0 does not mean empty.
	Approximate bool
	// Namespace is what distinguishes two sources of one name at one address: RabbitMQ's
	// virtual host. "" where the broker has none.
	Namespace string
	// Bindings say for people how messages come to it, as far as the configuration declares
	// that: RabbitMQ's exchanges and routing keys.
	Bindings string
}
