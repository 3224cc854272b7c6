package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// Tx is the transaction that a record's result is to be part of; see [Transactional].
type Tx struct {
	d    *longshore.Delivery // whose handler publishes
	with *txScope            // of its consumer; nil: it has no transactions
}

// txKey is the key under which the contexts of a transactional group's deliveries have its txScope.
type txKey struct{}

// txScope is what a handler's Publish needs of its consumer.
type txScope struct {
	tx          *transactions // its outbox and limits
	assignments *assignments  // find the partition of a delivery
}

// TxFrom returns the transaction of the delivery whose handler got ctx. Publish says so if there
// is none.
func TxFrom(ctx context.Context) *Tx { return TxOf(longshore.DeliveryFrom(ctx)) }

// TxOf is [TxFrom] for the handler of a batch, whose context is that of many deliveries.
func TxOf(d *longshore.Delivery) *Tx {
	if d == nil {
		return &Tx{}
	}
	with, _ := d.Context().Value(txKey{}).(*txScope)
	return &Tx{d: d, with: with}
}

// Publish keeps messages until the handler has returned nil. They are then written in one
// transaction with the position of its record, in the order of the calls, behind those of earlier
// records with the same key. If the handler fails, or its delivery is lost, they are dropped.
// dest is a topic or [To] a partition of it.
//
// Publish waits while Transactional.MaxBytes are waiting for a transaction. Errors: CodeNotFound
// if the topic or the partition does not exist, CodeTooLarge if a message is larger than its topic takes,
// CodeBlocked if handlers that have not returned hold all of MaxBytes, or what they hold up does,
// ErrSettled or ErrLost if the delivery is no longer the handler's.
func (t *Tx) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if t.with == nil {
		return &longshore.Error{Code: longshore.CodeState, Op: "publish in a transaction", Source: dest,
			Err:  errors.New("the context is not that of a delivery of a transactional Kafka group"),
			Hint: "set GroupConfig.Transactional, and pass the handler's own context, or use TxOf in the handler of a batch"}
	}
	topic, partition, err := parseDest(dest)
	if err != nil {
		return err
	}
	if len(msgs) == 0 {
		return nil
	}
	limit, err := t.with.tx.limits.with(ctx, topic, partition)
	if err != nil {
		return t.with.tx.src.b.failure(fmt.Sprintf("publish to kafka topic %q", topic), topic, err)
	}
	recs, bytes := make([]*kgo.Record, len(msgs)), int64(0)
	for i, m := range msgs {
		r, err := encode(m, time.Now())
		if err != nil {
			return err
		}
		r.Topic, r.Partition = topic, partition
		if err := limit.check(r, topic); err != nil {
			return err
		}
		recs[i], bytes = r, bytes+weight(r)
	}
	if err := t.with.tx.outbox.reserve(ctx, bytes, topic); err != nil {
		return err
	}
	if err := t.keep(recs, bytes); err != nil {
		t.with.tx.outbox.drop(bytes)
		return err
	}
	return nil
}

// keep adds records to those of the delivery.
func (t *Tx) keep(recs []*kgo.Record, bytes int64) error {
	p := t.with.assignments.get(tp{Topic: t.d.Origin.Topic, Num: t.d.Origin.Partition})
	if p == nil {
		return longshore.ErrLost
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	token := t.d.Token()
	switch {
	case p.state == released || !p.t.Has(token) || p.t.Held(token) != t.d.Root(): // settled, or of an earlier assignment
		if t.d.TakenBack() {
			return longshore.ErrLost
		}
		return longshore.ErrSettled
	case !t.d.Owned():
		if t.d.TakenBack() {
			return longshore.ErrLost
		}
		return longshore.ErrSettled
	}
	p.outputs.add(token, t.d, recs, bytes)
	return nil
}

// output is what the handler of one record has published.
type output struct {
	of     *longshore.Delivery // the attempt whose handler it was; a later one begins with nothing
	offset int64               // of the record
	epoch  int32               // leader epoch of the record
	recs   []*kgo.Record       // in the order of the calls
	bytes  int64               // of recs, in the account of the outbox
}

// outputs are those of a partition. Its lock guards them.
type outputs struct {
	box  *outbox            // the account of all partitions; nil without transactions
	open map[uint64]*output // of records in hand, by their sequence number
	done []*output          // of records that are done, in the order in which that was; no transaction has carried them
	left int64              // bytes of done that the last commit could not describe: the next may not either
}

// add keeps what an attempt has published.
func (o *outputs) add(seq uint64, of *longshore.Delivery, recs []*kgo.Record, bytes int64) {
	one := o.open[seq]
	if one != nil && one.of != of { // of an attempt that has failed
		o.discard(seq)
		one = nil
	}
	if one == nil {
		r := record(of.Root())
		one = &output{of: of, offset: r.Offset, epoch: r.LeaderEpoch}
		if o.open == nil {
			o.open = map[uint64]*output{}
		}
		o.open[seq] = one
	}
	one.recs, one.bytes = append(one.recs, recs...), one.bytes+bytes
}

// finish is called when a record is done: what the attempt that did it has published waits for
// the next transaction.
func (o *outputs) finish(seq uint64, root *longshore.Delivery) {
	one := o.open[seq]
	if one == nil {
		return
	}
	if root == nil || one.of != root.Newest() {
		o.discard(seq)
		return
	}
	delete(o.open, seq)
	o.done = append(o.done, one)
	o.box.finished(one.bytes)
}

// discard drops what a record in hand has published.
func (o *outputs) discard(seq uint64) {
	if one := o.open[seq]; one != nil {
		delete(o.open, seq)
		o.box.drop(one.bytes)
	}
}

// discardOpen drops what records in hand have published.
func (o *outputs) discardOpen() {
	for seq := range o.open {
		o.discard(seq)
	}
}

// weigh is how much outputs take in the account of the outbox.
func weigh(all []*output) (bytes int64) {
	for _, one := range all {
		bytes += one.bytes
	}
	return bytes
}

// leave gives those that are gone to a successor, with their place in the account.
func (o *outputs) leave(gone []*output) {
	o.done = slices.DeleteFunc(o.done, among(gone))
}

// stay says how many bytes a commit has left behind, at most what is still here.
func (o *outputs) stay(left int64) {
	left = min(left, weigh(o.done))
	if o.box != nil && left != o.left {
		o.box.stays(left - o.left)
	}
	o.left = left
}

// forget drops what waits for a transaction.
func (o *outputs) forget() {
	if len(o.done) == 0 {
		return
	}
	o.stay(0)
	o.box.carried(weigh(o.done))
	o.done = nil
}

// covered are those that a position describes: the others stay for a later transaction, since a
// next owner would do their records again.
func (o *outputs) covered(s *offsets.Snapshot, mark offsets.Mark) []*output {
	if s.Forgotten == 0 || len(o.done) == 0 {
		return slices.Clone(o.done)
	}
	saved, _ := offsets.Decode(s.Saved, mark, s.Offset)
	byOffset := slices.SortedFunc(slices.Values(o.done), func(a, b *output) int { return cmp.Compare(a.offset, b.offset) })
	left := among(slices.DeleteFunc(byOffset, func(one *output) bool { return one.offset < s.Offset || saved.Has(one.offset, one.epoch) }))
	return slices.DeleteFunc(slices.Clone(o.done), left)
}

// piece is what goes into the next transaction if all of some is too much for one: those of the
// first records, in the order in which they were done. cut is the offset of the first that is
// left; whole: nothing is.
func piece(all []*output, most int64) (first []*output, cut int64, whole bool) {
	byOffset := slices.SortedFunc(slices.Values(all), func(a, b *output) int { return cmp.Compare(a.offset, b.offset) })
	sum := int64(0)
	for i, one := range byOffset {
		if sum += one.bytes; sum > most && i > 0 {
			return slices.DeleteFunc(slices.Clone(all), func(o *output) bool { return o.offset >= one.offset }), one.offset, false
		}
	}
	return all, 0, true
}

// among reports of an output whether it is one of some.
func among(some []*output) func(*output) bool {
	in := make(map[*output]bool, len(some))
	for _, one := range some {
		in[one] = true
	}
	return func(one *output) bool { return in[one] }
}

// carried removes those that a transaction has written.
func (o *outputs) carried(gone []*output) {
	if len(gone) == 0 {
		return
	}
	before := weigh(o.done)
	o.done = slices.DeleteFunc(o.done, among(gone))
	o.box.carried(before - weigh(o.done))
}

// outbox is the account of what handlers of a consumer have published and no transaction has
// written.
type outbox struct {
	limit  int64         // of open and done together
	urgent chan struct{} // wakes the committer

	mu      sync.Mutex    // guards what follows
	open    int64         // bytes of records in hand: they may be dropped yet
	done    int64         // bytes that wait for the next transaction
	left    int64         // bytes of done that the last one could not take: waiting for the next may be in vain
	changed chan struct{} // closed and replaced when room was made
}

// reserve takes room for n bytes. It waits as long as the next transaction makes some.
func (b *outbox) reserve(ctx context.Context, n int64, topic string) error {
	op := fmt.Sprintf("publish to kafka topic %q", topic)
	for {
		b.mu.Lock()
		switch free, changed := b.limit-b.open-b.done, b.changed; {
		case n <= free:
			b.open += n
			b.mu.Unlock()
			return nil
		case n > b.limit:
			b.mu.Unlock()
			return &longshore.Error{Code: longshore.CodeTooLarge, Op: op, Source: topic,
				Err: fmt.Errorf("%d bytes in one call, and Transactional.MaxBytes is %d", n, b.limit), Hint: "raise Transactional.MaxBytes"}
		case b.done <= b.left:
			left := b.left
			b.mu.Unlock()
			if left > 0 {
				return &longshore.Error{Code: longshore.CodeBlocked, Op: op, Source: topic,
					Err:  fmt.Errorf("the %d bytes of Transactional.MaxBytes are taken; %d of them belong to records whose commit waits for earlier ones", b.limit, left),
					Hint: "raise Transactional.MaxBytes, or the broker's offset.metadata.max.bytes; the record is tried again"}
			}
			return &longshore.Error{Code: longshore.CodeBlocked, Op: op, Source: topic,
				Err:  fmt.Errorf("handlers that have not returned hold %d of the %d bytes of Transactional.MaxBytes", b.limit-free, b.limit),
				Hint: "raise Transactional.MaxBytes, or lower the number of workers; the record is tried again"}
		default:
			b.mu.Unlock()
			signal(b.urgent)
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// finished moves n bytes to those that wait for a transaction.
func (b *outbox) finished(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open, b.done = b.open-n, b.done+n
	b.wake() // those that wait may look whether anything is left to wait for
}

// drop gives back n bytes of records in hand.
func (b *outbox) drop(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= n
	b.wake()
}

// stays changes by n how many bytes the next transaction may not take.
func (b *outbox) stays(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	b.wake() // those that wait may do so in vain
}

// carried gives back n bytes that waited for a transaction.
func (b *outbox) carried(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done -= n
	b.wake()
}

// wake lets those that wait look again. The caller holds mu.
func (b *outbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}
