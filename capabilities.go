package longshore

import "time"

// Ordering is how far a broker keeps the order in which messages were sent.
type Ordering uint8

const (
	// OrderNone: no promise.
	OrderNone Ordering = iota
	// OrderQueue: one queue, in order on one consumer.
	OrderQueue
	// OrderPartition: within a partition.
	OrderPartition
	// OrderGroup: within a message group.
	OrderGroup
)

// Capabilities is what a source, or a consumer once it is open, can do. The
// container checks it against its configuration at Start. The zero value
// promises nothing.
type Capabilities struct {
	// Ordering is the scope in which the broker keeps order.
	Ordering Ordering
	// Keyed: producers of this broker set a key, so a container without an
	// explicit order works by key.
	Keyed bool
	// Partitions: deliveries carry a partition, so that work by partition is possible.
	Partitions bool

	// Delay: Nack with a delay is held by the broker (or the transport) and does
	// not need the container to wait.
	Delay bool
	// MaxDelay is the longest such delay; 0 = no limit.
	MaxDelay time.Duration
	// Extend: a delivery's lease can be extended.
	Extend bool
	// Lease is how long a delivery may stay unsettled without anybody
	// extending it; 0 = as long as the consumer lives. A transport that keeps
	// leases by itself reports 0 up to MaxLease.
	Lease time.Duration
	// MaxLease is the longest time a transport can keep a lease; 0 = no limit.
	MaxLease time.Duration

	// Attempts: the attempt count survives a redelivery by the broker.
	Attempts bool
	// CountsReturns: giving an unworked delivery back raises the broker's
	// count, and may dead-letter or drop it in the end.
	CountsReturns bool
	// DeliveryLimit is the count at which the broker itself gives up; 0 = none or unknown.
	DeliveryLimit int
	// LimitDeadLetters: what reaches that count goes to a dead-letter destination of the broker's
	// own, so it is not lost, and a delivery on the way there may still be handled.
	LimitDeadLetters bool

	// DeadLetter: Reject leads to a dead-letter destination that is known to exist.
	DeadLetter bool
	// HeadOfLineBlocking: a delivery that is never settled stops others behind it
	// (a partition's window), so keeping failed messages for ever must be asked for.
	HeadOfLineBlocking bool

	// SingleActive: only one consumer of the queue is served at a time.
	SingleActive bool
	// KeepsPlace: who cancels its consumer gives something up that others take at once, or
	// that is gone: the role of the single active one, partitions, a queue of its own.
	// A container whose intake is held, as by an open breaker, pauses such a consumer
	// and keeps what it has, where it would cancel another.
	KeepsPlace bool
	// OpensPaused: a source opened with OpenOptions.Paused takes nothing from the broker
	// until Resume. A container whose work may not start opens no other source.
	OpensPaused bool
	// LiveResize: the broker's window follows Resize without reopening.
	LiveResize bool
	// MostHeld is how many deliveries the broker leaves unsettled with this consumer, however
	// large a window is asked for; 0 = no limit, or none that is known.
	MostHeld int

	// MaxPublishBatch is the most messages of one broker call; 0 = no limit.
	MaxPublishBatch int
	// MaxMessageBytes is the largest message with its headers; 0 = unknown.
	MaxMessageBytes int64
	// MaxHeaders is the most headers the broker itself holds; 0 = no limit.
	MaxHeaders int
}
