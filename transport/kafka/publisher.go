package kafka

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const (
	// As long as the Java client's request.timeout.ms, so that one lost leader election fits in.
	defaultTimeout = 30 * time.Second
	// The client's own default, which is the message.max.bytes of old brokers; newer ones take
	// 48,576 bytes more.
	defaultBatch = 1000012
	// unanswered is how long a Publish whose time is over waits for the client to hand
	// its records back, which says which of them were written.
	unanswered = 500 * time.Millisecond
	// The client's Close waits up to a second for its connections; the rest is for the resends.
	closeTime = 1500 * time.Millisecond
)

// Publisher writes records. A destination is a topic, or a partition of one: see
// [To]. It is safe for concurrent use; concurrent calls share batches.
type Publisher struct {
	b       *Broker       // the cluster
	timeout time.Duration // of one Publish, by the clock of this process and not by the time of a record
	dials   dials         // why no broker answers, which the client does not say
	opts    []kgo.Opt     // of the client, and of the one that takes its place

	identities identities    // shows that a broker refused the idempotent producer
	large      *largeRecords // nil: MaxBatchBytes was set, and is the limit
	again      *resends      // sends records whose batch failed for another one

	mu       sync.Mutex     // guards now and closed
	now      *producing     // replaced after a failure that would make the client refuse everything
	replaced sync.WaitGroup // clients that another took the place of, until they are closed
	closed   bool           // Publish fails from then on
}

var _ transport.Publisher = (*Publisher)(nil)

// To is the destination for a chosen partition of a topic.
func To(topic string, partition int32) string {
	return topic + "/" + strconv.Itoa(int(partition))
}

// Publisher returns a publisher with connections of its own, which it makes when it
// is first used. Errors: configuration and addresses, all problems at once.
func (b *Broker) Publisher(cfg PublisherConfig) (*Publisher, error) {
	if err := errors.Join(b.problem(), cfg.check()); err != nil {
		return nil, err
	}
	timeout := or(cfg.Timeout, defaultTimeout)
	p := &Publisher{b: b, timeout: timeout, dials: dials{turn: make(chan struct{}, 1)}}
	opts := append(b.options(),
		kgo.WithHooks(&p.dials, &p.identities),
		// The client's own limit counts from the record's timestamp, so an old message
		// would be refused at once. Each Publish measures its own time: see batch.produce.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.ProducerBatchMaxBytes(or(cfg.MaxBatchBytes, defaultBatch)),
		kgo.ProducerLinger(cfg.Linger),
		kgo.RecordPartitioner(chosen{or(cfg.Partitioner, kgo.StickyKeyPartitioner(nil))}),
	)
	opts = append(opts, cfg.acks()...)
	opts = append(opts, kgo.ProducerBatchCompression(cfg.codecs()...))
	if cfg.MaxBatchBytes == 0 {
		p.large = &largeRecords{opts: opts}
	}
	// It dials nothing: the first Publish does.
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, badConfig("PublisherConfig or Options", firstLine(err.Error()), "")
	}
	p.opts, p.now, p.again = opts, &producing{cl: cl}, newResends(opts)
	return p, nil
}

// chosen lets a record name its partition; others follow the partitioner.
type chosen struct{ kgo.Partitioner }

type chosenTopic struct{ kgo.TopicPartitioner }

// ForTopic keeps the partitioner's hook on new batches where it has one: the sticky partitioner
// changes its partition with each.
func (c chosen) ForTopic(topic string) kgo.TopicPartitioner {
	inner := c.Partitioner.ForTopic(topic)
	if b, ok := inner.(kgo.TopicPartitionerOnNewBatch); ok {
		return chosenBatches{chosenTopic{inner}, b}
	}
	return chosenTopic{inner}
}

// RequiresConsistency: a record that names its partition waits for that one, also while it has
// no leader.
func (t chosenTopic) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || t.TopicPartitioner.RequiresConsistency(r)
}

// Partition is the record's own choice, or the partitioner's.
func (t chosenTopic) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return t.TopicPartitioner.Partition(r, n)
}

type chosenBatches struct {
	chosenTopic
	kgo.TopicPartitionerOnNewBatch
}

// Publish returns when all replicas in sync have all records. A *PartialError names
// those that failed; one with longshore.CodeMaybeSent may have been written.
func (p *Publisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) (failed error) {
	topic, partition, err := parseDest(dest)
	if err != nil {
		return err
	}
	with, err := p.enter()
	if err != nil {
		return err
	}
	defer func() { p.leave(ctx, with, failed) }()
	if err := p.reach(ctx, with.cl, topic); err != nil {
		return err
	}
	b := newBatch(topic, partition, msgs)
	b.produce(ctx, p.timeout, with.cl, p.again)
	if err := b.wait(ctx, p.refusal(with)); err != nil { //nolint:contextcheck // it answers from memory
		return outcome(topic, p.explain(ctx, with.cl, topic, p.b.failure(p.publishing(topic), topic, err)))
	}
	b.large(ctx, p.large, msgs)
	return outcome(topic, p.explain(ctx, with.cl, topic, b.result(p)))
}

// parseDest reads "topic" or "topic/partition".
func parseDest(dest string) (topic string, partition int32, err error) {
	topic, num, found := strings.Cut(dest, "/")
	partition = -1
	if found {
		n, err := strconv.ParseUint(num, 10, 31)
		if err != nil {
			return "", 0, badConfig("destination", fmt.Sprintf("%.260q names no partition", dest), "write topic or topic/partition")
		}
		partition = int32(n) //nolint:gosec // 31 bits
	}
	if !validTopic(topic) {
		return "", 0, badConfig("destination", fmt.Sprintf("%.260q is not a valid topic name", topic), topicHint)
	}
	return topic, partition, nil
}

// batch is one Publish. Promises may come after it returned, hence the lock.
type batch struct {
	topic string        // for the errors
	recs  []*kgo.Record // in the order of the messages
	done  chan struct{} // closed when all have an outcome

	mu    sync.Mutex         // guards what follows
	left  int                // records without an outcome
	errs  map[int]error      // by index of the message
	after time.Duration      // without a confirmation the rest is taken back
	timer *time.Timer        // runs out after after
	end   context.CancelFunc // takes it back
	late  chan struct{}      // closed when it was and the client has not handed it back
}

func newBatch(topic string, partition int32, msgs []*longshore.Message) *batch {
	b := &batch{topic: topic, recs: make([]*kgo.Record, len(msgs)), done: make(chan struct{}), late: make(chan struct{}), errs: map[int]error{}}
	now := time.Now()
	for i, m := range msgs {
		r, err := encode(m, now)
		if err != nil {
			b.errs[i] = err
			continue
		}
		r.Topic, r.Partition = topic, partition
		b.recs[i] = r
		b.left++
	}
	if b.left == 0 {
		close(b.done)
	}
	return b
}

// produce gives the records to the client, and limits their time by the clock of this
// process. The end of that time takes them back, so that a leader that answers later does
// not write what was reported as failed. The caller's context ends only the giving: were
// records taken back at its end, those of others behind them would be too.
func (b *batch) produce(ctx context.Context, limit time.Duration, cl *kgo.Client, again *resends) {
	if b.left == 0 {
		return
	}
	// Not a child of ctx: see above, its end would take back the records of other calls.
	limited, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.mu.Lock()
	b.after, b.end = limit, cancel
	b.timer = time.AfterFunc(limit, func() {
		cancel()
		time.AfterFunc(unanswered, func() { close(b.late) })
	})
	b.mu.Unlock()
	defer context.AfterFunc(ctx, cancel)()
	for i, r := range b.recs {
		if r == nil {
			continue
		}
		apart := parcel{rec: r, ctx: limited, done: func(err error) { b.promised(i, err) }}
		if again.suspects(r) {
			again.add(apart) //nolint:contextcheck // it answers from memory
			continue
		}
		cl.Produce(limited, r, func(_ *kgo.Record, err error) {
			if fateOf(err, limited.Err() != nil) == settled || overClient(cl, r) {
				b.promised(i, err)
			} else {
				again.add(apart) //nolint:contextcheck // it answers from memory
			}
		})
	}
}

// promised takes the outcome of a record.
func (b *batch) promised(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if errors.Is(err, context.Canceled) { // all that the client knows of the limit
			err = kgo.ErrRecordTimeout
		}
		b.errs[i] = err
	}
	if b.left--; b.left == 0 {
		b.timer.Stop()
		close(b.done)
		b.end()
		// Each confirmation shows that the leader answers, so the time begins again for the rest.
	} else if b.timer.Stop() {
		b.timer.Reset(b.after)
	}
}

// wait returns what is known when ctx or the time of the records ends, or refused says
// why none will be sent any more.
func (b *batch) wait(ctx context.Context, refused func() error) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-b.done:
			return nil
		case <-b.late: // the client takes its time to give them back
			return b.unconfirmed(kgo.ErrRecordTimeout)
		case <-ctx.Done():
			return b.unconfirmed(ctx.Err())
		// A client that was refused an identity fails nothing and sends nothing; only asking shows it.
		case <-look.C:
			if why := refused(); why != nil {
				b.end()
				return why
			}
		}
	}
}

// unconfirmed is the error of records of which nothing is known; nil: all are confirmed
// by now.
func (b *batch) unconfirmed(why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeTimeout, Op: fmt.Sprintf("publish to kafka topic %q", b.topic), Source: b.topic,
		Err: fmt.Errorf("%d of %d records were not confirmed: %w", b.left, len(b.recs), why)}
}

// overClient: the client itself refused it, and will again.
func overClient(cl *kgo.Client, r *kgo.Record) bool {
	limit, _ := cl.OptValue(kgo.ProducerBatchMaxBytes).(int32)
	return weight(r)-256 > int64(limit)
}

// result names the records that failed, by their index in the call.
func (b *batch) result(p *Publisher) error {
	if len(b.errs) == 0 {
		return nil
	}
	failed := make(map[int]error, len(b.errs))
	for i, err := range b.errs {
		failed[i] = p.b.failure(p.publishing(b.topic), b.topic, err)
	}
	return &transport.PartialError{Failed: failed, Total: len(b.recs)}
}

// Close waits for calls in progress, as long as ctx allows.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	cl := p.now.cl
	p.mu.Unlock()
	flush, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok { // the client's own end takes up to a second
		left := time.Until(end)
		flush, cancel = context.WithTimeout(ctx, left-min(left/4, closeTime))
	}
	defer cancel()
	err := cl.Flush(flush)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var all sync.WaitGroup
		all.Go(cl.Close)
		if p.large != nil {
			all.Go(p.large.close)
		}
		p.again.close(flush)
		all.Wait()
		p.replaced.Wait()
	}()
	select {
	case <-gone:
	case <-ctx.Done(): // the client ends by itself
	}
	return brokerError("close the publisher to "+p.b.address(), "", err)
}

// newID is a UUIDv7: unique, and ascending by time.
func newID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli())) //nolint:gosec // after 1970
	copy(b[:6], ms[2:])
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
