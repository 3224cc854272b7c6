package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// Outcome is what became of a transaction.
type Outcome uint8

const (
	// Aborted: no reader that reads committed records sees any of it.
	Aborted Outcome = iota
	// Committed: the records and the positions count.
	Committed
	// Unknown: its end was requested and not confirmed. Landed finds out.
	Unknown
)

// Producer commits one transaction after the other. It is not safe for concurrent use.
//
// A transaction that fails ends its client. The next client begins with InitProducerID for the
// same transactional id, which makes the broker end whatever is open, and refuse what the former
// client may still have on its way.
type Producer struct {
	ID       string                 // the transactional id; no other producer may use it at a time
	Group    string                 // whose positions are committed
	Instance string                 // of a static member; "" for others
	Limit    time.Duration          // of one transaction from here; less than the broker's for it
	Options  []kgo.Opt              // of each client
	Member   func() (string, int32) // this member's id and generation; "" while it joins
	closing  sync.WaitGroup         // clients that are being closed
	client   *kgo.Client            // nil: the next transaction makes one
	explicit bool                   // the cluster wants AddOffsetsToTxn: it is older than transaction.version 2
	closed   bool                   // no client is made any more
}

// Batch is one transaction.
type Batch struct {
	Records   []*kgo.Record                          // in the order in which they are written; they are not changed
	Positions map[cluster.Partition]cluster.Position // of the group
	// Still reports whether a partition is this member's. It is called after the generation was
	// read under which the positions are sent, so a partition that leaves later is refused by it.
	Still func(cluster.Partition) bool
}

// Errors of a batch that was aborted for this member's own state.
var (
	ErrGone = errors.New("a partition of the transaction has gone to another member")
)

// Commit writes the records and the positions. Where the broker refused positions, refused has
// the reasons and failed is nil.
func (p *Producer) Commit(ctx context.Context, b Batch) (refused map[cluster.Partition]error, o Outcome, failed error) {
	if id, _ := p.Member(); id == "" {
		return nil, Aborted, cluster.ErrJoining
	}
	if err := p.openIn(ctx, p.Limit); err != nil {
		return nil, Aborted, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	refused, o, failed = p.transact(ctx, b)
	if o != Committed {
		p.abandon()
		p.renew(ctx)
	}
	return refused, o, failed
}

// renew makes the next client at once: readers of the topics wait until the broker has ended the
// transaction. A failure is met again by the next call.
func (p *Producer) renew(ctx context.Context) {
	_ = p.openIn(context.WithoutCancel(ctx), min(p.Limit, 2*time.Second))
}

// openIn is Open with a time of its own, which a transaction would miss: after a failure each one
// begins with a new client, and a slow broker would never let one end.
func (p *Producer) openIn(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.Open(ctx)
}

// transact runs one transaction on the client.
func (p *Producer) transact(ctx context.Context, b Batch) (map[cluster.Partition]error, Outcome, error) {
	if err := p.client.BeginTransaction(); err != nil {
		return nil, Aborted, fmt.Errorf("begin a transaction: %w", err)
	}
	if err := produce(ctx, p.client, b.Records); err != nil {
		return nil, Aborted, err
	}
	if refused, err := p.send(ctx, b); err != nil || len(refused) > 0 {
		return refused, Aborted, err
	}
	switch err := p.client.EndTransaction(ctx, kgo.TryCommit); {
	case err == nil:
		return nil, Committed, nil
	case errors.Is(err, kerr.OperationNotAttempted), errors.Is(err, kerr.TransactionAbortable):
		return nil, Aborted, fmt.Errorf("commit the transaction: %w", err)
	default: // also where a broker refuses it: the refusal may answer a repetition of the request
		return nil, Unknown, fmt.Errorf("commit the transaction: %w", err)
	}
}

// produce writes copies of the records, so that a repetition begins with clean ones.
func produce(ctx context.Context, cl *kgo.Client, recs []*kgo.Record) error {
	var (
		mu    sync.Mutex
		first error
		left  = len(recs)
		done  = make(chan struct{})
	)
	for _, r := range recs {
		own := &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp, Topic: r.Topic, Partition: r.Partition}
		cl.Produce(ctx, own, func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = fmt.Errorf("publish to topic %q: %w", r.Topic, err)
			}
			if left--; left == 0 {
				close(done)
			}
		})
	}
	select {
	case <-done:
		return first
	case <-ctx.Done(): // the client is given up, which ends what is on its way
		return fmt.Errorf("publish the records of a transaction: %w", ctx.Err())
	}
}

// send adds the positions to the transaction, under the generation of this member.
func (p *Producer) send(ctx context.Context, b Batch) (map[cluster.Partition]error, error) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group = p.ID, p.Group
	if req.MemberID, req.Generation = p.Member(); req.MemberID == "" {
		return nil, cluster.ErrJoining
	}
	if p.Instance != "" {
		req.InstanceID = &p.Instance
	}
	for k := range b.Positions {
		if !b.Still(k) {
			return nil, ErrGone
		}
	}
	var err error
	if req.ProducerID, req.ProducerEpoch, err = p.client.ProducerID(ctx); err != nil {
		return nil, fmt.Errorf("identity of the producer: %w", err)
	}
	if p.explicit {
		if err := p.addGroup(ctx, req.ProducerID, req.ProducerEpoch); err != nil {
			return nil, err
		}
	}
	names := addPositions(req, b.Positions)
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return nil, fmt.Errorf("add positions to the transaction: %w", err)
	}
	return refusals(resp, names, b.Positions)
}

// addGroup makes the group's positions a part of the transaction, where the broker does not do
// that by itself.
func (p *Producer) addGroup(ctx context.Context, id int64, epoch int16) error {
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.Group, add.ProducerID, add.ProducerEpoch = p.ID, p.Group, id, epoch
	resp, err := add.RequestWith(ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("add the group to the transaction: %w", err)
	}
	return nil
}

// addPositions fills a request and returns the topics' names by their identities, by which a
// broker may answer.
func addPositions(req *kmsg.TxnOffsetCommitRequest, positions map[cluster.Partition]cluster.Position) map[[16]byte]string {
	names, index := map[[16]byte]string{}, map[string]int{}
	for k, at := range positions {
		i, known := index[k.Topic]
		if !known {
			i = len(req.Topics)
			index[k.Topic], names[at.TopicID] = i, k.Topic
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic, t.TopicID = k.Topic, at.TopicID
			req.Topics = append(req.Topics, t)
		}
		one := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		one.Partition, one.Offset, one.LeaderEpoch, one.Metadata = k.Num, at.Offset, at.Epoch, &at.Metadata
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, one)
	}
	return names
}

// refusals are the errors of an answer. One that leaves out a partition is an error as a whole.
func refusals(resp *kmsg.TxnOffsetCommitResponse, names map[[16]byte]string, sent map[cluster.Partition]cluster.Position) (map[cluster.Partition]error, error) {
	refused, answered := map[cluster.Partition]error{}, 0
	for _, t := range resp.Topics {
		if t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
		for _, one := range t.Partitions {
			k := cluster.Partition{Topic: t.Topic, Num: one.Partition}
			if _, known := sent[k]; !known {
				continue
			}
			answered++
			if err := kerr.ErrorForCode(one.ErrorCode); err != nil {
				refused[k] = err
			}
		}
	}
	if answered < len(sent) {
		return nil, fmt.Errorf("add positions to the transaction: the answer leaves out %d partitions", len(sent)-answered)
	}
	return refused, nil
}

// Landed reports whether a batch whose outcome is Unknown was committed. The broker has ended its
// transaction once another producer has the transactional id, and its positions, which are
// written together with its records, show how.
func (p *Producer) Landed(ctx context.Context, sent map[cluster.Partition]cluster.Position) (bool, error) {
	p.abandon()
	if err := p.openIn(ctx, p.Limit); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	found, err := kadm.NewClient(p.client).FetchOffsets(kadm.RequireStable(ctx), p.Group)
	if err != nil {
		return false, fmt.Errorf("read the positions of the group: %w", err)
	}
	// All of them were written or none, and no other commit has the same, so one shows it:
	// another partition may have gone to a member that has committed since.
	for k, at := range sent {
		now, ok := found.Lookup(k.Topic, k.Num)
		if ok && now.Err != nil {
			return false, fmt.Errorf("read the positions of the group: %w", now.Err)
		}
		if ok && now.At == at.Offset && now.Metadata == at.Metadata {
			return true, nil
		}
	}
	return false, nil
}

// Open makes a client, unless there is one, and ends what an earlier producer with the same id
// has left open. The broker refuses an id that may not be used, and a timeout that is too long.
func (p *Producer) Open(ctx context.Context) error {
	if p.client != nil {
		return nil
	}
	if p.closed {
		return kgo.ErrClientClosed
	}
	cl, err := kgo.NewClient(p.Options...)
	if err != nil {
		return err
	}
	p.client = cl
	if _, _, err := cl.ProducerID(ctx); err != nil {
		p.abandon()
		return fmt.Errorf("begin with transactional id %q: %w", p.ID, err)
	}
	level, err := level(ctx, cl)
	if err != nil {
		p.abandon()
		return err
	}
	p.explicit = level < 2
	return nil
}

// level is the cluster's transaction.version: from 2 on brokers add what a transaction touches by
// themselves.
func level(ctx context.Context, cl *kgo.Client) (int16, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "longshore", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, fmt.Errorf("read the features of the cluster: %w", err)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel, nil
		}
	}
	return 0, nil
}

// abandon ends the client. What it has on its way fails there, or is refused by the broker.
func (p *Producer) abandon() {
	if cl := p.client; cl != nil {
		p.client = nil
		p.closing.Go(cl.Close)
	}
}

// Close ends the producer and waits until its clients are closed.
func (p *Producer) Close() {
	p.closed = true
	p.abandon()
	p.closing.Wait()
}
