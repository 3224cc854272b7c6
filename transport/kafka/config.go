package kafka

import (
	"crypto/tls"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/longshore-go/longshore/transport"
)

// Config is how to reach a cluster. The zero value is plain text without login.
type Config struct {
	// TLS encrypts the connections and verifies each broker's certificate by the
	// name it is reached at.
	TLS bool
	// TLSConfig is for certificates of one's own; it implies TLS. Its ServerName
	// should stay empty: each broker has its own.
	TLSConfig *tls.Config
	// SASL is the login.
	SASL SASL
	// ClientID is what the broker shows in its logs and quotas. Zero: "longshore".
	ClientID string
	// Rack is where this client is, so that it can read from a replica nearby.
	Rack string
	// Outlet is how the publishers of this cluster's sources publish: dead letters, what
	// is put back, and what the command line sends. Zero: as [PublisherConfig] says.
	Outlet PublisherConfig
	// DialTimeout bounds one connection attempt. Zero: 5 s.
	DialTimeout time.Duration
	// MaxUnpacked is the most bytes that one compressed batch may unpack to; see
	// GroupConfig.OversizedBatch. A batch of a few KB may unpack to gigabytes. Zero: 64 MiB.
	MaxUnpacked int
	// Options are passed to franz-go, for consumers and publishers alike. They come before
	// the options of this package, which win where both set the same. Options that no other
	// can take back (a group, topics, transactions …) are refused by name.
	Options []kgo.Opt
}

// Mechanism is a way to log in.
type Mechanism string

// The mechanisms.
const (
	Plain       Mechanism = "PLAIN"
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
	// OAuthBearer takes the token from Password, asked for at each login and at each
	// re-authentication.
	OAuthBearer Mechanism = "OAUTHBEARER"
)

// SASL is a login. The zero value is none.
type SASL struct {
	// Mechanism: zero is PLAIN if there is a user.
	Mechanism Mechanism
	User      string // the login; as it is, without escapes
	// Password is asked for at each connect and re-authentication, so a changed one
	// is used without a restart.
	Password transport.Secret
	// Native is a mechanism of franz-go, in place of all others: for AWS MSK IAM
	// that of github.com/twmb/franz-go/pkg/sasl/aws.
	Native sasl.Mechanism
}

// Start is where a partition without a committed position is read from.
type Start int64

const (
	// Earliest skips nothing. It is the zero value; Kafka's own default is the latest.
	Earliest Start = 0
	// Latest starts at the end as it is when the partition is first assigned; that
	// position is committed then, so that nothing after it is missed. Partitions that
	// are added while the topic is read, and topics that come to match a pattern,
	// are read from their first record.
	Latest Start = -1
)

// StartAt starts at the first record with this timestamp or a later one.
func StartAt(t time.Time) Start { return Start(max(t.UnixMilli(), 1)) }

// Protocol is how a group shares out its partitions.
type Protocol uint8

const (
	// Classic is the protocol of all brokers, with cooperative-sticky balancing.
	Classic Protocol = iota
	// Consumer is KIP-848's: the broker assigns. It needs Kafka 4.0, better 4.3;
	// older brokers get the classic one.
	Consumer
)

// Isolation is what is seen of transactions.
type Isolation uint8

const (
	// ReadCommitted shows records of committed transactions only.
	ReadCommitted Isolation = iota
	// ReadUncommitted shows all.
	ReadUncommitted
)

// OutOfRange is what happens when a position is not in the log any more.
type OutOfRange uint8

const (
	// ToEarliest goes on at the oldest record there is.
	ToEarliest OutOfRange = iota
	// ToLatest goes on at the end.
	ToLatest
	// Fail ends the consumer with an error, again at each reopening.
	Fail
)

// Declare creates topics that do not exist. The zero value creates none: a
// missing topic is an error. A topic that exists with other properties than those
// set here makes Open fail with [longshore.CodeMismatch]; it is never altered. Of the
// dead-letter topic only the existence counts.
type Declare struct {
	// Partitions of a created topic; 0 = do not create.
	Partitions int32
	// Replicas of a created topic. Zero: the broker's default.
	Replicas int16
	// Settings of a created topic, for example "retention.ms". The dead-letter topic
	// gets none of them.
	Settings map[string]string
}

// GroupConfig is how a group consumes. The zero value works.
type GroupConfig struct {
	// Start is for partitions without a committed position. Zero: Earliest.
	Start Start
	// OutOfRange is for positions that retention has overtaken or that lie beyond
	// the end. Zero: ToEarliest. Each time there is one event with the size of the gap.
	OutOfRange OutOfRange
	// Protocol of the group. Zero: Classic.
	Protocol Protocol
	// InstanceID makes a static member: it keeps its partitions over a restart that
	// is shorter than the session timeout. It must differ between instances.
	InstanceID string
	// Isolation: zero is ReadCommitted.
	Isolation Isolation
	// OversizedBatch is what happens to a batch that unpacks to more than
	// Config.MaxUnpacked. Zero: RejectBatch.
	OversizedBatch OversizedBatch
	// Pattern: the topics are regular expressions. They may match none yet.
	Pattern bool

	// Window is how many records of one partition may be in work beyond the oldest
	// that is not done. Zero: 4096, more where a container needs it, and up to 65,536
	// while the oldest waits for a retry.
	Window int
	// SettleLinger is the longest time until a position is committed; sooner after 500
	// records, at least 20 ms after the last. Zero: 1 s, and 100 ms with Transactional.
	SettleLinger time.Duration
	// Commit says when positions are committed. Zero: CommitByLoad.
	Commit CommitPolicy
	// Members is how many members of the group this one container has, each with its own
	// connections and partitions. More than partitions are idle. Zero: 1.
	Members int
	// RebalanceDrain is how long a partition that goes to another member waits for
	// its running handlers. Order by key holds across a rebalance only if it is longer
	// than a handler takes; each rebalance may take that much longer. At most half of
	// RebalanceTimeout. Zero: 5 s, at most a quarter of RebalanceTimeout.
	RebalanceDrain time.Duration
	// RebalanceTimeout is how long the group waits for a member. Zero: 60 s.
	RebalanceTimeout time.Duration
	// SessionTimeout is after how much silence a member is dead. Zero: 45 s. With the
	// consumer protocol the broker's own setting counts.
	SessionTimeout time.Duration

	// Transactional makes what handlers publish with TxFrom a part of the commit. nil: commits
	// carry positions only.
	Transactional *Transactional

	// Declare creates missing topics, and the container's dead-letter topic.
	Declare Declare
}

// BroadcastConfig is how every instance for itself reads all of some topics. Nothing
// is committed; a consumer that is reopened goes on where it was, a new process
// starts at Start.
type BroadcastConfig struct {
	Start      Start      // zero: Earliest, for the state in a compacted topic
	OutOfRange OutOfRange // zero: ToEarliest
	Isolation  Isolation  // zero: ReadCommitted
	Window     int        // zero: 4096 for each partition
	// OversizedBatch: zero is RejectBatch.
	OversizedBatch OversizedBatch
	Declare        Declare // zero: the topics must exist
}

// PublisherConfig is how to publish. The zero value is safe: idempotent, and
// confirmed by all replicas in sync.
type PublisherConfig struct {
	// Timeout is how long one record may take until its broker has confirmed it; the
	// outcome is unknown then. Zero: 30 s.
	Timeout time.Duration
	// Linger collects records for a batch. Zero: none.
	Linger time.Duration
	// MaxBatchBytes is the largest batch, and so the largest record. Zero: 1,000,012,
	// the default limit of topics.
	MaxBatchBytes int32
	// Partitioner chooses the partition of records whose destination does not name
	// one. Zero: by the hash of the key as Java's clients do, and for records
	// without a key one partition after the other, batch by batch.
	Partitioner kgo.Partitioner
	// Compression of batches, the first that the broker knows. Zero: none, because each
	// consumer of the topic must be able to read it, and some clients cannot read snappy
	// or zstd without a library of their own.
	Compression []kgo.CompressionCodec
	// Acks is whose confirmation makes a record published. Zero: of all replicas in sync.
	Acks Acks
}

// Acks is whose confirmation a record waits for.
type Acks uint8

const (
	// AcksAll waits for all replicas in sync, and the broker drops a record that the client
	// repeats (idempotence).
	AcksAll Acks = iota
	// AcksLeader waits for the leader alone. A record is lost with a leader that dies before
	// another has it, and can be written twice. There is nothing below it: a Publish
	// that does not wait could not report anything.
	AcksLeader
)

const (
	defaultWindow    = 4096
	defaultLinger    = time.Second
	commitCount      = 500                    // completions after which a commit does not wait for the linger
	commitSpacing    = 20 * time.Millisecond  // but not more often than this
	commitRetry      = 100 * time.Millisecond // nor than this after one that failed
	defaultRebalance = time.Minute
	defaultSession   = 45 * time.Second
	defaultDrain     = 5 * time.Second
	defaultDial      = 5 * time.Second
	fetchWait        = 250 * time.Millisecond // resuming a partition waits for the fetch in flight
	metadataAge      = 10 * time.Second       // new partitions and deleted topics are seen within it
)

// or is v, or what stands in for its zero value.
func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// rebalance is how long a member may take to give up partitions before the group goes on without it.
func (g *GroupConfig) rebalance() time.Duration { return or(g.RebalanceTimeout, defaultRebalance) }

// drain is what handlers have of that time; the rest is for the commit and the join.
func (g *GroupConfig) drain() time.Duration {
	return or(g.RebalanceDrain, min(defaultDrain, g.rebalance()/4))
}
