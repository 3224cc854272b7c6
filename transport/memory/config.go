package memory

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
)

// Config is the configuration of a [Broker]. The zero value works.
type Config struct {
	// Name is the address in descriptions and errors. Zero: "memory".
	Name string
	// Clock is where time comes from. Zero: the system's clock.
	Clock longshore.Clock
	// MaxMessageBytes refuses larger messages, body, key and header names and
	// texts counted. Zero: no limit.
	MaxMessageBytes int64
}

// Feature is something every queue can do unless it is switched off. Features
// can be joined with |.
type Feature uint8

// The features that [QueueConfig.Without] switches off.
const (
	// Delay: Nack with a delay is held by the broker.
	Delay Feature = 1 << iota
	// Extend: Delivery.Extend works.
	Extend
	// Attempts: the attempt count survives a redelivery. Without it a
	// redelivered message carries attempt 2 for ever, as with RabbitMQ's classic queues.
	Attempts
	// LiveResize: the window of an open consumer follows Resize.
	LiveResize
)

// QueueConfig is the configuration of a queue and of how one consumes from it.
// The zero value works.
//
// DeadLetter, DeliveryLimit, CountsReturns, FIFO, Partitions, SingleActive,
// Lease, KeepLease, MaxLease and MaxDelay belong to the queue: the first source
// that is opened sets them, one with all of them zero takes the queue as it is,
// and one that says something else fails to open with [longshore.CodeMismatch].
type QueueConfig struct {
	// MustExist makes Open fail with [longshore.CodeNotFound] if nobody has
	// opened, declared or published to the queue. Zero: created on first use.
	MustExist bool

	// DeadLetter is the queue that takes rejected messages and those beyond
	// DeliveryLimit. Zero: none; Reject returns [longshore.CodeUnsupported].
	DeadLetter string
	// DeliveryLimit is how often a message may fail before the broker itself
	// dead-letters it, or drops it where there is no DeadLetter. Zero: no limit.
	DeliveryLimit int
	// CountsReturns makes every return of a delivery count as a failure, also
	// one that no handler saw. Zero: only failed attempts count.
	CountsReturns bool
	// FIFO holds back the messages of a key while one of them is unsettled or
	// delayed. Messages without a key are not held back. Zero: no groups.
	FIFO bool
	// Partitions spreads the messages over partition numbers by their key; those
	// without a key take turns. Zero: none.
	Partitions int
	// SingleActive serves one consumer at a time; the others stand by.
	SingleActive bool
	// Exclusive makes Open fail with [longshore.CodeExclusive] while another
	// consumer holds the queue, and keeps others out.
	Exclusive bool
	// Lease is how long a delivery may stay unsettled before the broker takes it
	// back, and with it the later messages of its key or partition that the consumer
	// holds, so that the order is kept. Zero: as long as the consumer lives.
	Lease time.Duration
	// KeepLease extends the lease of unsettled deliveries for as long as the
	// consumer lives, at the most MaxLease (zero: no limit).
	KeepLease bool
	MaxLease  time.Duration
	// MaxDelay is the longest delay of a Nack; longer ones are refused with
	// [longshore.CodeUnsupported]. Zero: no limit.
	MaxDelay time.Duration

	// Prefetch is the most a consumer holds unsettled. Zero: what the container
	// asks for, or 250 if it does not ask.
	Prefetch int
	// Pull takes messages only while Receive waits, instead of filling a buffer
	// in advance.
	Pull bool
	// SettleLinger is how long an accepted settlement may wait before it is
	// carried out, or until half of the window waits. Zero: carried out at once.
	SettleLinger time.Duration

	// Without switches features off. Zero: nothing is missing.
	Without Feature
}

// BroadcastConfig is the configuration of a topic of which every consumer gets
// every message. The zero value works.
type BroadcastConfig struct {
	// Retain keeps the last message of each key and gives it to consumers that
	// come later.
	Retain bool
	// Prefetch is the most a consumer holds unsettled. Zero: what the container
	// asks for, or 250 if it does not ask.
	Prefetch int
}

// PublisherConfig is the configuration of a publisher. The zero value works.
type PublisherConfig struct {
	// MustExist refuses messages to a queue that nobody has opened, declared or
	// published to, with [longshore.CodeUnroutable]. Zero: the queue is created.
	MustExist bool
}

// defaultWindow is the window of a consumer whose container does not ask for one.
const defaultWindow = 250

// props are the queue's own part of a QueueConfig.
type props struct {
	deadLetter     string        // see QueueConfig, as all that follow
	deliveryLimit  int           // returns before a message is dead
	partitions     int           // 0: the queue has none
	countsReturns  bool          // a return is a delivery
	fifo           bool          // one message of a key at a time
	singleActive   bool          // one consumer at a time
	keepLease      bool          // extended while it is held
	lease, keptFor time.Duration // until a message is given to another; the most that extending reaches
	maxDelay       time.Duration // of a nack
}

func (c *QueueConfig) props() props {
	return props{deadLetter: c.DeadLetter, deliveryLimit: c.DeliveryLimit, partitions: c.Partitions,
		countsReturns: c.CountsReturns, fifo: c.FIFO, singleActive: c.SingleActive,
		keepLease: c.KeepLease, lease: c.Lease, keptFor: c.MaxLease, maxDelay: c.MaxDelay}
}

// over puts the queue's own part into a consumer's configuration.
func (p *props) over(c QueueConfig) QueueConfig {
	c.DeadLetter, c.DeliveryLimit, c.CountsReturns = p.deadLetter, p.deliveryLimit, p.countsReturns
	c.FIFO, c.Partitions, c.SingleActive = p.fifo, p.partitions, p.singleActive
	c.Lease, c.KeepLease, c.MaxLease, c.MaxDelay = p.lease, p.keepLease, p.keptFor, p.maxDelay
	return c
}

// firstLease is the lease of a message that was just pushed; 0: none. A kept lease runs
// as long as the queue allows, since nothing has to extend it.
func (p *props) firstLease() time.Duration {
	switch {
	case p.lease <= 0:
		return 0
	case p.keepLease:
		return p.keptFor
	}
	return p.lease
}

// check returns all that is wrong with the configuration of the named queue.
func (c *QueueConfig) check(name string) error {
	l := &problem.List{Op: fmt.Sprintf("memory queue %q", name), Source: name}
	if name == "" {
		l.Add(problem.Bad("", "name it", "the queue has no name").OfKind(problem.Missing))
	}
	for field, n := range map[string]int{"DeliveryLimit": c.DeliveryLimit, "Partitions": c.Partitions, "Prefetch": c.Prefetch} {
		if n < 0 {
			l.Range(field, n, "0 or more")
		}
	}
	for field, d := range map[string]time.Duration{"Lease": c.Lease, "MaxLease": c.MaxLease, "MaxDelay": c.MaxDelay, "SettleLinger": c.SettleLinger} {
		if d < 0 {
			l.Range(field, d, "0 or more")
		}
	}
	if c.DeadLetter == name && name != "" {
		l.Range("DeadLetter", c.DeadLetter, "another queue than its own")
	}
	if c.KeepLease && c.Lease == 0 {
		l.Range("Lease", c.Lease, "more than 0 if {KeepLease} is set")
	}
	return l.Err()
}

func (c *QueueConfig) capabilities() longshore.Capabilities {
	has := func(f Feature) bool { return c.Without&f == 0 }
	caps := longshore.Capabilities{
		Ordering: longshore.OrderQueue, Keyed: c.FIFO || c.Partitions > 0, Partitions: c.Partitions > 0,
		Delay: has(Delay), MaxDelay: c.MaxDelay, Extend: has(Extend), Lease: c.Lease,
		Attempts: has(Attempts), CountsReturns: c.CountsReturns, DeliveryLimit: c.DeliveryLimit,
		DeadLetter: c.DeadLetter != "", SingleActive: c.SingleActive, KeepsPlace: c.SingleActive || c.Exclusive,
		LiveResize: has(LiveResize) && c.Prefetch == 0, OpensPaused: true,
	}
	if c.FIFO {
		caps.Ordering = longshore.OrderGroup
	}
	if c.KeepLease {
		caps.Lease, caps.MaxLease = 0, c.MaxLease
	}
	return caps
}
