package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
	"github.com/longshore-go/longshore/transport/kafka/internal/txn"
)

// Transactional makes a group publish and commit in one transaction. What handlers publish
// with [TxFrom] is kept in memory until the handler has returned nil, and is then written
// together with the position of its record. Consumers that read committed records see the
// result of each record once, also after a crash. Effects elsewhere, such as rows in a
// database, happen at least once as before.
//
// A dead letter of the container joins the transaction, unless DeadLetter.Via is set.
type Transactional struct {
	// ID is the transactional id. It must differ between instances, and should be the same
	// after a restart (the name of the pod of a StatefulSet, for example): a restart then
	// ends at once what a killed process has left open. Zero: a random one; the broker
	// ends what is left open after Timeout, and consumers of the topics wait that long.
	ID string
	// Timeout is after how long the broker aborts a transaction. A transaction lasts only as
	// long as its records take to be written, for which it has half of Timeout. At most the
	// broker's transaction.max.timeout.ms. Zero: 10 s.
	Timeout time.Duration
	// Records is how many finished records make a transaction begin before SettleLinger is
	// over. Zero: 500.
	Records int
	// MaxBytes bounds what handlers have published and no transaction has written. A Publish
	// beyond it waits for the next transaction. Zero: 64 MiB.
	MaxBytes int64
}

const (
	defaultTxTimeout = 10 * time.Second
	defaultTxLinger  = 100 * time.Millisecond // read-committed consumers see nothing sooner
	defaultTxBytes   = 64 << 20
	leastTxTimeout   = time.Second
	mostTxTimeout    = 15 * time.Minute // the default of transaction.max.timeout.ms
)

func (t *Transactional) timeout() time.Duration { return or(t.Timeout, defaultTxTimeout) }

// linger is how long a finished record waits for others before a commit.
func (g *GroupConfig) linger() time.Duration {
	if g.Transactional != nil {
		return or(g.SettleLinger, defaultTxLinger)
	}
	return or(g.SettleLinger, defaultLinger)
}

// commitLimit bounds the commits of one round; each transaction in it has a limit of its own.
func (g *GroupConfig) commitLimit() time.Duration {
	if g.Transactional != nil {
		return max(commitTimeout, 3*g.Transactional.timeout())
	}
	return commitTimeout
}

// enough is how many finished records do not wait for the linger.
func (g *GroupConfig) enough() int64 {
	if g.Transactional != nil {
		return int64(or(g.Transactional.Records, commitCount))
	}
	return commitCount
}

// checkTransactional finds mistakes in the settings of this file.
func (s *Group) checkTransactional(l *problem.List) {
	t := s.cfg.Transactional
	if t == nil {
		return
	}
	if t.Timeout != 0 && (t.Timeout < leastTxTimeout || t.Timeout > mostTxTimeout) {
		l.Range("Transactional.Timeout", t.Timeout, "from %s to %s, or 0 for the default, %s", leastTxTimeout, mostTxTimeout, defaultTxTimeout)
	}
	if t.Records < 0 {
		l.Range("Transactional.Records", t.Records, "positive, or 0 for the default, %d", commitCount)
	}
	if t.MaxBytes < 0 {
		l.Range("Transactional.MaxBytes", t.MaxBytes, "positive, or 0 for the default, 64 MiB")
	}
	if linger := s.cfg.linger(); t.Timeout >= 0 && linger >= t.timeout()/2 {
		l.Conflict("SettleLinger", linger, "a {Transactional.Timeout} of "+t.timeout().String(),
			"a batch and its commit, which may take half of the timeout, must take less than the timeout", "lower {SettleLinger}, or raise {Transactional.Timeout}")
	}
	if s.cfg.Isolation == ReadUncommitted {
		l.Conflict("Isolation", "ReadUncommitted", "{Transactional}", "the results of records that were never committed would be published", "leave {Isolation} out")
	}
	if s.b.cfg.Outlet.Acks != AcksAll {
		l.Conflict("Transactional", nil, "{Outlet.Acks}", "a transaction is confirmed by all replicas in sync", "leave {Outlet.Acks} out")
	}
}

// transactions is the committer's way to commit positions together with what handlers have
// published. The committer's turn guards it, except for outbox and limits.
type transactions struct {
	src      *Group        // names in errors
	producer *txn.Producer // of this member
	outbox   *outbox       // what handlers have published
	limits   *topicLimits  // of the topics that are published to

	unknown map[tp]*pending         // a commit that was requested and not confirmed; nil: there is none
	sent    map[tp]cluster.Position // the positions in it, to tell whether the group has them
	refused map[tp]bool             // partitions whose topics the broker did not know or allow, until it takes their positions
}

// newTransactions makes the part, without a client; nil for groups without transactions.
func newTransactions(s *Group, settled *settlements) *transactions {
	t := s.cfg.Transactional
	if t == nil {
		return nil
	}
	return &transactions{src: s, refused: map[tp]bool{}, limits: &topicLimits{known: map[string]topicRules{}},
		outbox: &outbox{limit: or(t.MaxBytes, int64(defaultTxBytes)), urgent: settled.urgent, changed: make(chan struct{})}}
}

// connect makes the producer. Its clients connect when they are used.
func (t *transactions) connect(cl *kgo.Client) {
	cfg, outlet := t.src.cfg.Transactional, &t.src.b.cfg.Outlet
	id := cfg.ID
	if id == "" {
		id = "longshore-" + t.src.group + "-" + rand.Text()
	}
	t.limits.cl, t.limits.most = cl, outlet.MaxBatchBytes
	t.producer = &txn.Producer{ID: id, Group: t.src.group, Instance: t.src.cfg.InstanceID, Limit: cfg.timeout() / 2, Member: cl.GroupMetadata,
		Options: append(t.src.b.options(), kgo.TransactionalID(id), kgo.TransactionTimeout(cfg.timeout()),
			kgo.ProducerBatchMaxBytesFn(func(topic string) int32 { return t.limits.batch(topic, outlet.MaxBatchBytes) }),
			kgo.RecordPartitioner(chosen{or(outlet.Partitioner, kgo.StickyKeyPartitioner(nil))}),
			kgo.ProducerBatchCompression(outlet.codecs()...))}
}

// open ends what an earlier producer with the same id has left open, and checks that the broker
// accepts id and timeout.
func (t *transactions) open(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.producer.Open(ctx)
	if errors.Is(err, kerr.InvalidTransactionTimeout) {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "open " + t.src.title(), Source: t.src.name(),
			Err:  fmt.Errorf("Transactional.Timeout is %s, and the broker allows less: %w", t.src.cfg.Transactional.timeout(), err),
			Hint: "lower Transactional.Timeout, or raise the broker's transaction.max.timeout.ms"}
	}
	return err
}

// close ends the producer; nil: there is none.
func (t *transactions) close() {
	if t != nil && t.producer != nil {
		t.producer.Close()
	}
}

// carries reports whether a commit has records of handlers to write.
func (t *transactions) carries(batch map[tp]*pending) bool {
	if t == nil {
		return false
	}
	for _, one := range batch {
		if len(one.outputs) > 0 { // each has records: Publish keeps nothing else
			return true
		}
	}
	return false
}

// commit writes the records of a batch and its positions. Its answers are those of a commit
// without a transaction: what has none was aborted with the rest, and is removed from positions.
func (t *transactions) commit(ctx context.Context, batch map[tp]*pending, positions map[tp]cluster.Position, still func(tp) bool) (map[tp]error, error) {
	var recs []*kgo.Record
	for _, one := range batch {
		for _, o := range one.outputs {
			recs = append(recs, o.recs...)
		}
	}
	refused, outcome, err := t.producer.Commit(ctx, txn.Batch{Records: recs, Positions: positions, Still: still})
	switch outcome {
	case txn.Committed:
		answers := make(map[tp]error, len(positions))
		for k := range positions {
			answers[k] = nil
			delete(t.refused, k)
		}
		return answers, nil
	case txn.Unknown:
		t.unknown, t.sent = batch, positions
		return nil, fmt.Errorf("%w: %w", errUnconfirmed, t.src.b.failure("commit a transaction of "+t.src.title(), t.src.name(), err))
	case txn.Aborted:
	}
	if err != nil {
		return nil, t.src.b.failure("commit a transaction of "+t.src.title(), t.src.name(), err)
	}
	for k := range positions {
		if refused[k] == nil {
			delete(positions, k)
		} else if topicRefused(refused[k]) {
			t.refused[k] = true
		}
	}
	return refused, nil
}

// apart reports whether a partition is to be committed by itself.
func (t *transactions) apart(k tp) bool { return t != nil && t.refused[k] }

// topicRefused: the position of a partition is refused for its topic, and again until that is
// there or allowed. The other partitions are not concerned.
func topicRefused(err error) bool {
	var ke *kerr.Error
	if !errors.As(err, &ke) {
		return false
	}
	switch ke {
	case kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.InconsistentTopicID, kerr.TopicAuthorizationFailed:
		return true
	}
	return false
}

// unsettled reports whether the outcome of a commit is not known.
func (t *transactions) unsettled() bool { return t != nil && t.unknown != nil }

// settle finds out what became of a commit that was not confirmed. Nothing else may be committed
// before: its records would be written twice, or its positions taken back.
func (t *transactions) settle(ctx context.Context, still func(*partition) bool, current *assignments) error {
	// Only a partition that has records in it, and is still this member's, shows the outcome:
	// its position is one that no other commit has.
	sent := map[tp]cluster.Position{}
	for k, one := range t.unknown {
		if len(one.outputs) > 0 && still(one.p) {
			sent[k] = t.sent[k]
		}
	}
	landed := false
	if len(sent) > 0 {
		var err error
		if landed, err = t.producer.Landed(ctx, sent); err != nil {
			return t.src.b.failure("find out whether a transaction of "+t.src.title()+" was committed", t.src.name(), err)
		}
	}
	if landed {
		for _, one := range t.unknown {
			one.p.committed(one, nil)
			if q := current.get(one.p.key.tp()); q != nil && q.token == one.p.token { // a seek that failed has left its outputs to q
				q.mu.Lock()
				q.outputs.carried(one.outputs)
				q.mu.Unlock()
			}
		}
	}
	t.unknown, t.sent = nil, nil
	return nil
}

// errUnconfirmed: another try finds out what became of the transaction first.
var errUnconfirmed = errors.New("its end is not confirmed")

// endsTransaction: the broker has ended the transaction, or given its id to another producer. The
// next one begins with a new identity.
func endsTransaction(ke *kerr.Error) bool {
	switch ke {
	case kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.UnknownProducerID,
		kerr.TransactionAbortable, kerr.ConcurrentTransactions, kerr.OperationNotAttempted, kerr.OutOfOrderSequenceNumber, kerr.TransactionCoordinatorFenced:
		return true
	}
	return false
}

// txOutlet is the publisher of a transactional group's broker: what is published for one of its
// deliveries joins the transaction of that.
type txOutlet struct {
	*Publisher

	b *Broker // a delivery of another one has its transaction on another cluster
}

// Publish publishes at once unless ctx has a delivery of a transactional group of this broker.
func (o txOutlet) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if tx := TxFrom(ctx); tx.with != nil && tx.with.tx.src.b == o.b {
		return tx.Publish(ctx, dest, msgs...)
	}
	return o.Publisher.Publish(ctx, dest, msgs...)
}

var _ transport.Publisher = txOutlet{}
