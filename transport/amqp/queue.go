package amqp

import (
	"fmt"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// QueueType is RabbitMQ's x-queue-type.
type QueueType string

// The types of queues. A stream that Longshore does not declare is named by x-stream-offset
// in QueueConfig.Arguments, which also says where a new process begins.
const (
	Classic QueueType = "classic"
	Quorum  QueueType = "quorum"
	Stream  QueueType = "stream"
)

// ExchangeKind is the type of an exchange.
type ExchangeKind string

// The kinds of exchanges.
const (
	Direct      ExchangeKind = "direct"
	Fanout      ExchangeKind = "fanout"
	Topic       ExchangeKind = "topic"
	HeadersKind ExchangeKind = "headers"
	// ConsistentHash shares messages out among its queues by a hash of the routing key, so
	// that messages of one key meet in one queue. It needs RabbitMQ's plugin
	// rabbitmq_consistent_hash_exchange. A binding's Key is the queue's weight.
	ConsistentHash ExchangeKind = "x-consistent-hash"
)

// Special values of QueueConfig fields.
const (
	// Unlimited is a Prefetch without any limit: the broker sends the whole queue,
	// into this process's memory.
	Unlimited = -1
	// NoLinger is a SettleLinger that sends each settlement at once.
	NoLinger time.Duration = -1
	// RoutingKey is a Key that takes the message's routing key.
	RoutingKey = codec.RoutingKey
)

// Declare says what is created if it is missing. The zero value declares nothing:
// queues and exchanges must exist and are used as they are. What exists with
// other properties makes Open fail with [longshore.CodeMismatch].
type Declare struct {
	// Type of the queue. Zero: the virtual host's default type.
	Type QueueType
	// Bindings lead messages of exchanges to the queue.
	Bindings []Binding
	// Arguments of the queue, for example x-message-ttl, x-dead-letter-exchange,
	// x-delivery-limit. x-queue-type and x-single-active-consumer are set by Type
	// and QueueConfig.SingleActive.
	Arguments amqp091.Table
	// Transient makes a queue that does not survive a restart of the broker.
	// Zero: durable.
	Transient bool
	// AutoDelete makes a queue that goes away with its last consumer.
	AutoDelete bool
}

// Binding leads the messages of an exchange to a queue.
type Binding struct {
	Exchange string // that the messages come from
	// Key is the routing key, or the pattern of a topic exchange.
	Key string
	// Kind declares the exchange, durable. Zero: it must exist.
	Kind ExchangeKind
	// Arguments of the binding, for headers exchanges.
	Arguments amqp091.Table
	// ExchangeArguments are those of an exchange that Kind declares: hash-header or
	// hash-property for [ConsistentHash], alternate-exchange for any.
	ExchangeArguments amqp091.Table
}

// isZero says that nothing is declared: the queue is used as it is.
func (d *Declare) isZero() bool {
	return d.Type == "" && len(d.Bindings) == 0 && len(d.Arguments) == 0 && !d.Transient && !d.AutoDelete
}

// QueueConfig is the configuration of a queue and of how one consumes from it.
// The zero value works.
type QueueConfig struct {
	// Declare creates what is missing, with the container's dead-letter queue.
	// Zero: the queue must exist and is used as it is.
	Declare Declare

	// Prefetch is the most the broker sends ahead of settling, as it is. Zero: it
	// follows the workers, from 16 up to max(250, twice the most the container can
	// hold); 250 without a container. With [PerWorker] it is each consumer's own, and zero is
	// 2, or a batch. With an order, on a queue that is not declared as
	// classic, zero is 250 for each queue (or the first of 1000, 4000, 16000 and 65535
	// that holds what the container can), because the order of a key survives several
	// hand-overs only if all instances have the same. See also [Unlimited].
	Prefetch int
	// SettleLinger is the longest an accepted ack waits before it is sent, so that
	// many go in one frame; half a window of them goes at once. Zero: 2 ms. See also
	// [NoLinger].
	SettleLinger time.Duration

	// Consumers says whether the container's workers share one channel or have a consumer
	// each. Zero: OneChannel.
	Consumers Consumers

	// Exclusive consumes alone: Open fails with [longshore.CodeExclusive] while
	// others consume, and they fail while this one does. Not on quorum queues,
	// where RabbitMQ does not heed it.
	Exclusive bool
	// SingleActive says that the queue serves one consumer at a time, and makes it
	// so where Declare is set. The others stand by (transport.EventStandby).
	SingleActive bool
	// Priority is the consumer's x-priority: higher ones are served first.
	Priority int
	// Tag is the consumer tag. Each further consumer on the channel (a larger window,
	// Resume) appends a number to it. Zero: made up.
	Tag string
	// Arguments of the consumer, for example x-stream-offset.
	Arguments amqp091.Table
	// AutoAck lets the broker forget messages when it has sent them. They are lost
	// with the process, and without Pull nothing limits how many it sends.
	AutoAck bool
	// Pull fetches messages one by one (basic.get) while Receive waits for them,
	// instead of having them sent ahead. PullInterval is the pause after an empty
	// queue was seen. Zero: 250 ms.
	Pull         bool
	PullInterval time.Duration

	// Key names the header that holds a message's key, for producers that do not
	// write longshore-key; [RoutingKey] takes the routing key. Zero: no key then.
	Key string
	// DeadLettered says that the queue has a dead-letter exchange which Declare
	// does not show (set by a policy, or by who created it). Without one RabbitMQ
	// drops a rejected message, so Reject is refused where none is known.
	DeadLettered bool
	// BrowseCounts allows Browse also where looking counts as a delivery: on quorum
	// queues each look brings a message nearer to its delivery limit.
	BrowseCounts bool
}

const (
	defaultLinger       = 2 * time.Millisecond
	defaultPullInterval = 250 * time.Millisecond
	maxTag              = codec.MaxShort - 11 // room for a number behind it
	baseWindow          = 16                  // the first slice of a window
	defaultWindow       = 250                 // without a container, and the least cap with one
	defaultLease        = 30 * time.Minute
)

// linger is how long acks wait for others; negative settings mean not at all, since zero is the
// default.
func (c *QueueConfig) linger() time.Duration {
	switch {
	case c.SettleLinger == 0:
		return defaultLinger
	case c.SettleLinger < 0:
		return 0
	}
	return c.SettleLinger
}

// pullInterval is the pause after a look that found nothing.
func (c *QueueConfig) pullInterval() time.Duration {
	if c.PullInterval == 0 {
		return defaultPullInterval
	}
	return c.PullInterval
}

// live reports whether the window can follow the workers: it does so by more
// consumers on the channel, which these settings do not allow.
func (c *QueueConfig) live() bool {
	return c.Consumers == OneChannel && c.Prefetch == 0 && !c.Exclusive && !c.SingleActive && c.Priority == 0 && !c.AutoAck && !c.Pull && !c.stream()
}

// inPlace reports whether a pause leaves the consumer where it is: cancelled, it would
// hand its role on, or lose its place in a stream. Its prefetch then bounds what is
// received meanwhile, so there must be one.
func (c *QueueConfig) inPlace() bool {
	return (c.SingleActive || c.Exclusive || c.stream()) && c.Prefetch != Unlimited && !c.AutoAck
}

// check returns all that is wrong with the configuration of the named queue.
func (c *QueueConfig) check(name string) error {
	l := &problem.List{Op: fmt.Sprintf("rabbitmq queue %q", name), Source: name}
	if name == "" || len(name) > codec.MaxShort {
		l.Range("the name", fmt.Sprintf("%d bytes long", len(name)), "1 to 255 bytes long")
	}
	if c.Prefetch < Unlimited || c.Prefetch > 65535 {
		l.Range("Prefetch", c.Prefetch, "from 1 to 65535, or 0 to follow the workers{?, or amqp.Unlimited}")
	}
	if c.SettleLinger < 0 && c.SettleLinger != NoLinger {
		l.Range("SettleLinger", c.SettleLinger, "positive, or 0 for the default, 2ms{?, or amqp.NoLinger}")
	}
	if c.PullInterval < 0 {
		l.Range("PullInterval", c.PullInterval, "positive, or 0 for the default, 250ms")
	}
	if len(c.Tag) > maxTag {
		l.Range("Tag", fmt.Sprintf("%d bytes long", len(c.Tag)), "at most %d bytes long", maxTag)
	}
	if err := c.Arguments.Validate(); err != nil {
		l.Add(problem.Bad("Arguments", "", "cannot be sent by AMQP").Because(err))
	}
	c.checkPerWorker(l)
	c.Declare.check(l)
	c.together(l)
	return l.Err()
}

// check reports what RabbitMQ would refuse, or what another setting has already said.
func (d *Declare) check(l *problem.List) {
	if err := d.Arguments.Validate(); err != nil {
		l.Add(problem.Bad("Declare.Arguments", "", "cannot be sent by AMQP").Because(err))
	}
	if d.Type == Quorum && (d.Transient || d.AutoDelete) {
		l.Conflict("Declare.Type", "quorum", "{Declare.Transient} or {Declare.AutoDelete}", "quorum queues are always durable", "set {Declare.Type} to {Classic}, or leave the other out")
	}
	for _, name := range []string{"x-queue-type", "x-single-active-consumer"} {
		if _, ok := d.Arguments[name]; ok {
			l.Bad("Declare.Arguments", "use {Declare.Type} or {SingleActive} instead", "must not have %s", name)
		}
	}
	if _, ok := d.Arguments["x-consumer-timeout"]; ok && d.Type != Quorum {
		l.Conflict("Declare.Arguments", "x-consumer-timeout", "any {Declare.Type} other than quorum", "RabbitMQ refuses it", "set {Declare.Type} to {Quorum}")
	}
	for i, b := range d.Bindings {
		if b.Exchange == "" || len(b.Exchange) > codec.MaxShort || len(b.Key) > codec.MaxShort {
			l.Bad(fmt.Sprintf("Declare.Bindings[%d]", i), "give an exchange and a key of at most 255 bytes each", "has no exchange, or a name longer than 255 bytes")
		}
		if err := b.Arguments.Validate(); err != nil {
			l.Add(problem.Bad(fmt.Sprintf("Declare.Bindings[%d].Arguments", i), "", "cannot be sent by AMQP").Because(err))
		}
	}
}

// deadLettered reports whether a rejected message is known to go somewhere.
func (c *QueueConfig) deadLettered() bool {
	_, ok := c.Declare.Arguments["x-dead-letter-exchange"]
	return ok || c.DeadLettered
}

// refusesWhenFull reports whether the queue is known to refuse messages when it is full.
// What expires in a delay queue then is refused too, and nobody hears of it: RabbitMQ
// drops the message. So nothing is sent away to wait.
func (c *QueueConfig) refusesWhenFull() bool {
	overflow, _ := c.Declare.Arguments["x-overflow"].(string)
	return strings.HasPrefix(overflow, "reject-publish")
}

// capabilities before the broker is known. The consumer reports its own once it is open, when
// version and policies are known too.
func (c *QueueConfig) capabilities() longshore.Capabilities {
	caps := longshore.Capabilities{Ordering: longshore.OrderQueue, Delay: true, MaxDelay: codec.MaxDelay,
		Lease: defaultLease, Attempts: true, DeadLetter: c.deadLettered(),
		SingleActive: c.SingleActive, KeepsPlace: c.inPlace(), LiveResize: c.live(), OpensPaused: true,
		CountsReturns: c.Declare.Type != Classic} // a quorum queue counts up to 4.2, and no other kind does
	if c.Consumers == PerWorker {
		caps.Ordering = longshore.OrderNone // the messages of one queue are in several buffers
	}
	if c.refusesWhenFull() {
		caps.Delay, caps.MaxDelay = false, 0
	}
	if l := declaredLimit(c, conn.Version{}); l.basis == limitKnown { // the version is not known yet
		caps.DeliveryLimit = l.n
	}
	if ms := codec.Integer(c.Declare.Arguments["x-consumer-timeout"]); ms > 0 {
		caps.Lease = time.Duration(ms) * time.Millisecond
	}
	if c.AutoAck {
		caps.Lease, caps.DeadLetter, caps.CountsReturns = 0, false, false
	}
	return caps
}
