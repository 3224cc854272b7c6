package transport

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
)

// This file has every optional interface of the contract. A source, a consumer or an
// observer implements those that its broker allows, and whoever needs one asks for it by a
// type assertion, never for a transport by its name. A test compares the table with all
// type assertions in this module.
//
//	interface           on        what for                                   who asks                     capability
//	Describer           Source    names in logs, metrics and errors          container, tools             always
//	Checker             Source    mistakes in its settings, without I/O      container, config, urls, cmd always
//	Validator           Source    wishes that its settings cannot serve      container, config            always
//	Outlet              Source    publish on the same broker                 container, config, tools     always
//	Preparer            Source    complete a delivery before its handler     container, tools             SQS claim checks
//	Prober              Source    test connection and access                 doctor                       always
//	Browser             Source    look at messages without taking them       cmd, dlq, doctor             always
//	Scanner             Source    the same, one by one                       dlq                          RabbitMQ, SQS
//	BrowseCoster        Source    what looking does to messages              cmd                          RabbitMQ, SQS
//	DepthReader         Source    count of messages, none taken              cmd                          RabbitMQ, SQS
//	Remainder           Source    all that has not passed through it yet     bridge                       always
//	Neighbour           Source    another place of the same broker           bridge                       always
//	Locker              Source    one active instance, the others stand by   bridge                       RabbitMQ
//	Follower            Source    copies of new messages, none taken         cmd                          RabbitMQ, Kafka
//	Incarnated          Source    tells a place from one made later          bridge                       Kafka, SQS
//	SettingsReader      Source    the broker's settings of a queue           doctor                       RabbitMQ, Kafka, SQS
//	Declarer            Source    arguments that it declares                 doctor                       RabbitMQ
//	Removable           Source    the command that deletes its place         cmd                          RabbitMQ, Kafka, SQS
//	GroupRemovable      Source    the command that deletes its group         cmd                          Kafka
//	ConsumerLister      Source    all who consume from it, others too        container                    RabbitMQ, Kafka
//	ProgressReader      Source    what a group has consumed of a log         dlq, doctor                  logs
//	Truncater           Source    remove the oldest part of a log            dlq                          logs
//	Resizer             Consumer  hold more or fewer deliveries              container, dlq               LiveResize
//	WorkerFollower      Consumer  one consumer at the broker per worker      container                    RabbitMQ
//	Bufferer            Consumer  deliveries not handed out yet              container, dlq               always
//	Prefetcher          Consumer  how much the broker sends ahead            container                    RabbitMQ
//	Tagged              Consumer  the name that the broker lists it under    container                    RabbitMQ
//	Pauser              Consumer  stop fetching, keep role and leases        container                    OpensPaused, KeepsPlace
//	Backlogger          Consumer  messages that wait at the broker           container, dlq               where it is cheap
//	CapabilityReporter  Consumer  what this very queue can do                container                    where it differs
//	Partitioner         Consumer  partitions assigned now                    container                    Partitions
//	ProgressReporter    Consumer  position, end and commit of partitions     container                    logs
//	Seeker              Consumer  move the position                          container                    logs
//	HeadReporter        Consumer  partitions that are held back              container                    HeadOfLineBlocking
//	PeerReporter        Publisher names the broker that it is connected to   cmd                          RabbitMQ
//	LeaveObserver       Observer  partitions that are about to leave         transports                   Partitions

// Optional on a Source.
type (
	// Describer names the source. Without it the source is called "source".
	Describer interface{ Describe() Description }

	// Checker finds mistakes in the source's configuration without I/O;
	// container.New calls it.
	Checker interface{ Check() error }

	// Validator finds what of a container's wishes the source's configuration cannot
	// serve, without I/O; container.New calls it with what Open will get, but for Base,
	// Observer and Window.
	Validator interface{ ValidateOpen(opts OpenOptions) error }

	// Removable names the command of the broker's own tools that deletes the place that the
	// source reads, for people. Nothing in this module runs it.
	Removable interface{ RemovalCommand() string }

	// GroupRemovable names the consumer group that the source reads with, and the command of the
	// broker's own tools that deletes it, for people. Its error is [longshore.CodeNotFound] where
	// the group does not exist; both names are valid with any error.
	GroupRemovable interface {
		GroupRemoval(ctx context.Context) (group, command string, err error)
	}

	// Outlet gives a publisher on the same broker and the destination that leads
	// back to the source. The caller closes the publisher.
	Outlet interface {
		Publisher(ctx context.Context) (p Publisher, self string, err error)
	}

	// Browser looks at messages without taking them. They cannot be settled. from
	// is where to go on ("" = the oldest), next is "" at the end.
	Browser interface {
		Browse(ctx context.Context, from string, n int) (msgs []*longshore.Delivery, next string, err error)
	}

	// BrowseCoster says what Browse and Scan do to the messages they look at, as a sentence
	// for people. A source without it looks and leaves no trace.
	BrowseCoster interface{ BrowseCost() string }

	// DepthReader counts the messages of a source and takes none. Errors: those of Open.
	DepthReader interface {
		Depth(ctx context.Context) (Depth, error)
	}

	// Remainder counts everything that has not passed through the source yet, wherever the
	// broker keeps it, and takes none of it. Errors: those of Open.
	Remainder interface {
		Remaining(ctx context.Context) (Remaining, error)
	}

	// Neighbour makes a source of another queue or topic of the same broker, with the same
	// login and the same settings but for those that declare.
	Neighbour interface{ Neighbour(name string) Source }

	// Locker returns the source with a lock: of all consumers in the world with a lock of that
	// name one is open. Open of the others fails with longshore.CodeExclusive until that one is
	// closed or its process or connection has ended.
	Locker interface{ Locked(name string) Source }

	// Follower copies the messages that arrive from now on and takes none from the source: what
	// the copy settles means nothing. missing says in a sentence which messages the copy does
	// not see; "" for none. Errors: longshore.CodeUnsupported with the reason, where the broker
	// allows no copy, and those of Open.
	Follower interface {
		Follow(ctx context.Context) (copies Source, missing string, err error)
	}

	// Incarnated identifies the queue or topic as it is now: the text changes if it is deleted
	// and made again under its name. Errors: those of Open, longshore.CodeNotFound if it is gone.
	Incarnated interface {
		Incarnation(ctx context.Context) (string, error)
	}

	// SettingsReader reads what the broker knows about the source, under the broker's own
	// names: Vocabulary tells which. Errors: those of Open.
	SettingsReader interface {
		Vocabulary() Vocabulary
		Settings(ctx context.Context) (map[string]string, error)
	}

	// Declarer reports the arguments with which the source declares its queues, to compare
	// them with what exists; nil: it declares none.
	Declarer interface{ Declares() map[string]any }

	// ConsumerLister lists all who consume from the source, other programs too. A consumer
	// implements it in place of its source where the question needs its session. The answer
	// may be some seconds old. Errors: longshore.CodeUnsupported with a hint where the broker
	// cannot be asked, and those of Open.
	ConsumerLister interface {
		Consumers(ctx context.Context) (ConsumerList, error)
	}

	// ProgressReader is a source that keeps what was consumed, such as a Kafka topic. The
	// function reports whether the source's group has consumed a delivery; it is called in
	// the order of the messages of each partition.
	ProgressReader interface {
		Done(ctx context.Context) (func(*longshore.Delivery) bool, error)
	}

	// Truncater removes everything before a position of each partition.
	Truncater interface {
		Truncate(ctx context.Context, before map[int32]int64) error
	}

	// Scanner is a Browser that hands over each message as soon as it is read, the
	// oldest first, until each returns false, n were read, ctx ends or the queue does;
	// whole means that the queue ended. It reads no message beyond the last one it
	// handed over, where the broker allows that, and gives all back. What it read was
	// handed over also when it returns an error. each runs on the caller's goroutine.
	Scanner interface {
		Scan(ctx context.Context, n int, each func(*longshore.Delivery) bool) (whole bool, err error)
	}

	// Preparer completes a delivery before a handler or middleware sees it, on the
	// goroutine of its worker and with the handler's context, at each attempt: it may
	// do I/O and call Delivery.Replace. An error takes the place of the handler's
	// result, so longshore.Reject sends the message to the dead-letter destination and a
	// plain error follows the redelivery policy. A container calls it; who receives
	// without one calls it too.
	Preparer interface {
		Prepare(ctx context.Context, d *longshore.Delivery) error
	}

	// Prober tests connection and access.
	Prober interface {
		Probe(ctx context.Context) error
	}
)

// Optional on a Consumer. Only the supervisor of a container calls them.
type (
	// Resizer follows the container's wish for more or fewer deliveries. After an error the
	// container calls it again, also with the number from before: a part may have followed.
	Resizer interface {
		Resize(ctx context.Context, window int) error
	}

	// WorkerFollower has a consumer at the broker for each worker of the container. The
	// container calls it when the number of workers changes. After an error it calls it again.
	WorkerFollower interface {
		FollowWorkers(ctx context.Context, workers int) error
	}

	// Bufferer says how many deliveries the transport holds that Receive has not
	// handed out.
	Bufferer interface{ Buffered() int }

	// Prefetcher says how many deliveries the broker sends ahead of their settlement, as
	// the broker shows it.
	Prefetcher interface{ Prefetch() int }

	// Tagged says under which name the broker lists its consumers. Where there are several,
	// they have the names NAME, NAME.2, NAME.3 and so on.
	Tagged interface{ ConsumerTag() string }

	// Pauser stops fetching but keeps membership and leases, with Capabilities.KeepsPlace
	// also its role. The wanted state is kept over reopens by the container. After an error
	// the container repeats the call, or the opposite one if that is wanted by then.
	Pauser interface {
		Pause(ctx context.Context) error
		Resume(ctx context.Context) error
	}

	// Backlogger says how many messages wait at the broker and when that was read.
	Backlogger interface {
		Backlog(ctx context.Context) (count int64, at time.Time, err error)
	}

	// CapabilityReporter reports what this very queue can do, known once it is open.
	CapabilityReporter interface{ Capabilities() Capabilities }
)

// Depth is how many messages a queue has.
type Depth struct {
	Ready       int  // ready to be delivered
	Hidden      int  // delivered and not settled, where the broker counts those
	Approximate bool // the counts are estimates
}

// Vocabulary names the terms of a [SettingsReader].
type Vocabulary string

// The vocabularies.
const (
	VocabularyRabbitMQ Vocabulary = "rabbitmq" // version, cluster_name, messages, consumers
	VocabularyKafka    Vocabulary = "kafka"    // Kafka's names of topic and group settings
	VocabularySQS      Vocabulary = "sqs"      // SQS's names of queue attributes
)

// Optional on a Consumer of a log that is read by position. Operators use them.
type (
	// Partitioner says how many partitions this consumer has now.
	Partitioner interface{ Partitions() int }

	// ProgressReporter says how far the consumer is in each partition that it has now. Only
	// ends that no fetch has shown are asked of the broker; one that does not answer in time
	// is not known.
	ProgressReporter interface {
		PartitionProgress(ctx context.Context) []PartitionProgress
	}

	// Seeker moves the position of this consumer's own partitions.
	//
	// It hands out nothing more of them, calls fenced, so that what no handler has can be
	// given back, and waits until what is out was settled, at most for drain; what is then
	// still out is lost (Delivery.Lose). The new position is committed before the first
	// record from there is handed out. Other partitions go on meanwhile. It returns where
	// each partition goes on; after an error they go on where they were.
	Seeker interface {
		Seek(ctx context.Context, to Position, drain time.Duration, fenced func()) ([]Moved, error)
	}
)

// HeadReporter is a consumer of a log that tells which partitions are held back, the
// longest first. It is optional, and cheap.
type HeadReporter interface{ BlockedPartitions() []BlockedPartition }

// PeerReporter is a Publisher that names the broker at the other end of its connection, for
// people: product, version and cluster, as the broker gives them. "" before the first
// Publish that connected. An address alone does not show that another broker than the
// expected one listens there.
type PeerReporter interface{ Peer() string }

// LeaveObserver is an [Observer] that hears when a part of a source is about to leave
// for another consumer. A transport whose source has parts asks for it.
type LeaveObserver interface {
	// Leaving: these partitions go to another member as soon as the handlers that run
	// have ended, or the transport's time for that is over. Nothing more of them may be
	// started, and what has not started is given back soon after the call. It does not
	// block. A partition that comes back later has nothing to do with this.
	Leaving(parts []TopicPartition)
}
