package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// partition is one assignment of a partition to this member, from the reading of its
// position to its end. It is the settler of its deliveries, so a late settlement reaches
// the assignment that its delivery came from and never the next one.
type partition struct {
	key   partitionOf             // topic by identity, because a name can be given again
	with  *surroundings           // what all partitions share
	sub   *longshore.Subscription // what its deliveries have in common
	mark  offsets.Mark            // of the topic, in what is saved alongside a position
	token *assignmentToken        // of the member with the partition; a seek goes on with it

	mu      sync.Mutex      // guards what follows; reports and requests are made without it
	t       offsets.Tracker // which records are done, and the offset below which all are
	buf     fetchBuffer     // fetched and not handed out
	again   givenBack       // given back and not handed out again
	ledger  ledger          // acknowledged, and what of it is committed
	outputs outputs         // what handlers have published, until a transaction has written it
	head    headWatch       // the oldest record that is not done

	state   assignmentState // decides what may still be handed out and settled
	deleted bool            // its topic is gone: nothing of it is committed
	queued  bool            // it stands in the line of those with something to hand out
	out     int             // handed out and not settled: a revocation waits for these
	next    int64           // offset that the next fetched record should have
	logEnd  int64           // as the last fetch said; -1 before, when the backlog has to ask for it
	barrier error           // reading ends here, before a batch that is too large; nil: it does not
}

// assignmentState is how far an assignment is on its way. It never goes back.
type assignmentState uint8

const (
	assigned assignmentState = iota
	revoking                 // nothing new is handed out; what is in hand may be settled
	released                 // settlements are refused: the partition may be another member's
)

// assignmentToken is the time from an assignment to its revocation, over all seeks in it.
type assignmentToken struct{ _ byte }

// surroundings is what all partitions of a consumer share: the configuration, and the parts
// that they report to.
type surroundings struct {
	src     *Group          // configuration and names
	base    context.Context //nolint:containedctx // parent of the deliveries' contexts
	window  atomic.Int64    // records of a partition that may be in hand; see Resize
	turns   *turns          // told when a partition has something to hand out
	flow    *flow           // told what it has fetched
	settled *settlements    // told of each acknowledgement
	reports *reports        // what the observer hears
	box     *outbox         // the account of what handlers publish; nil without Transactional
}

// settlements counts acknowledgements between the partitions and the committer.
type settlements struct {
	enough int64         // so many do not wait for the linger; 1 with AfterEach
	each   bool          // AfterEach: commits follow each other without a pause
	recent atomic.Int64  // since the last commit
	urgent chan struct{} // wakes the committer: many are recent, or a position is new
	moved  chan struct{} // wakes a revocation: a partition that it waits for has nothing in hand
	lost   atomic.Int64  // acknowledged records that no commit has carried, since the last Flush
}

// add counts acknowledgements. The committer is woken by the one that crosses the threshold
// only: each further one would find it awake.
func (s *settlements) add(n int) {
	if now := s.recent.Add(int64(n)); s.each || now >= s.enough && now-int64(n) < s.enough {
		signal(s.urgent)
	}
}

// tp names the partition without the topic's identity.
func (k partitionOf) tp() tp { return tp{Topic: k.topic, Num: k.num} }

// String is topic/partition.
func (k partitionOf) String() string { return fmt.Sprintf("%s/%d", k.topic, k.num) }

// newPartition makes the state of an assignment that begins at a position. The end of the log
// is unknown before the first fetch.
func newPartition(with *surroundings, topics *topics, key partitionOf, position int64, epoch int32) *partition {
	return &partition{key: key, with: with, sub: topics.subscription(key), mark: topics.mark(key), token: &assignmentToken{},
		t: offsets.New(position, epoch), buf: fetchBuffer{at: key.tp(), flow: with.flow}, ledger: ledger{budget: offsets.DefaultBudget, at: -1},
		outputs: outputs{box: with.box}, next: position, logEnd: -1}
}

// successor is another state for the rest of the same assignment, at a position which is
// committed soon.
func (p *partition) successor(position int64, epoch int32) *partition {
	return &partition{key: p.key, with: p.with, sub: p.sub, mark: p.mark, token: p.token,
		t: offsets.New(position, epoch), buf: fetchBuffer{at: p.buf.at, flow: p.buf.flow}, ledger: ledger{budget: p.ledger.budget, at: p.ledger.at, told: p.ledger.told},
		outputs: outputs{box: p.outputs.box},
		next:    position, logEnd: -1}
}

// inherit takes over what an earlier owner had saved for the position base.
func inherit(t *offsets.Tracker, mark offsets.Mark, saved string, base int64) {
	if s, ok := offsets.Decode(saved, mark, base); ok {
		t.Inherit(s)
	}
}

// take hands out up to n records; more says whether there are others, which keeps the
// partition in the line.
func (p *partition) take(n int, out []*longshore.Delivery) (_ []*longshore.Delivery, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == assigned {
		for ; n > 0 && len(p.again.due) > 0; n-- {
			out = append(out, p.redeliver(p.again.pop(), time.Now()))
		}
		out = p.takeNew(n, out)
	}
	if p.state != assigned { // takeNew gives up the lock now and then
		p.queued = false
		return out, false
	}
	p.checkWindow()
	p.queued = p.canHandOut()
	return out, p.queued
}

// takeNew hands out up to n of the records that wait. It gives up the lock while deliveries
// are made: whoever settles meanwhile should not have to wait for that.
func (p *partition) takeNew(n int, out []*longshore.Delivery) []*longshore.Delivery {
	skipped := 0
	for n > 0 {
		room := p.with.room(&p.t, &p.buf, &p.ledger)
		if room <= 0 || p.buf.made == nil && !p.make() {
			break
		}
		ds := p.buf.pop(p.with.fitting(&p.t, &p.buf, &p.ledger, min(n, room)))
		before := len(out)
		out = p.register(ds, out)
		n -= len(out) - before
		skipped += len(ds) - (len(out) - before)
	}
	if skipped > 0 {
		p.with.settled.add(skipped)
	}
	return out
}

// make makes deliveries of the next records; false if there are none. It gives up the lock
// meanwhile. Only Receive takes, so no other call uses up sequence numbers.
func (p *partition) make() bool {
	recs, at, bytes := p.buf.next(madeAtOnce)
	if len(recs) == 0 {
		return false
	}
	first, drops := p.t.Tail(), p.buf.drops
	p.mu.Unlock()
	ds := longshore.NewDeliveries(p.with.base, p, first, len(recs))
	for i, r := range recs {
		fill(&ds[i], p.sub, r, 1, at)
	}
	p.mu.Lock()
	if p.buf.drops != drops {
		return false
	}
	p.buf.made, p.buf.madeBytes = ds, bytes
	return true
}

// register moves records from those that wait to those in hand. Markers, and what an
// earlier owner has done, are done at once.
func (p *partition) register(ds []longshore.Delivery, out []*longshore.Delivery) []*longshore.Delivery {
	for i := range ds {
		d := &ds[i]
		r := record(d)
		if r.Attrs.IsControl() || p.t.WasDone(r.Offset, r.LeaderEpoch) {
			p.t.Ack(p.t.Add(r.Offset, r.LeaderEpoch, nil))
			continue
		}
		if n := p.t.InheritedAttempt(r.Offset, r.LeaderEpoch); n > 0 {
			d.Attempt = n
			p.t.Retried(p.t.Tail(), n)
		}
		p.t.Add(r.Offset, r.LeaderEpoch, d)
		p.out++
		out = append(out, d)
	}
	return out
}

// redeliver makes a new delivery of a record that was given back.
func (p *partition) redeliver(e repeat, now time.Time) *longshore.Delivery {
	d := longshore.NewDelivery(p.with.base, p, e.seq)
	fill(d, p.sub, e.rec, e.attempt, now)
	d.Origin.Redelivered = true
	p.t.Hold(e.seq, d)
	p.out++
	return d
}

// fill makes a delivery of a record.
func fill(d *longshore.Delivery, sub *longshore.Subscription, r *kgo.Record, attempt int, at time.Time) {
	decode(&d.Message, r)
	d.Attempt = attempt
	d.Origin.Subscription = sub
	d.Origin.Topic, d.Origin.Partition, d.Origin.Position = r.Topic, r.Partition, uint64(r.Offset) //nolint:gosec // not negative
	d.Origin.ReceivedAt = at
	d.SetNative(r)
}

// record is the one that a delivery was made of; nil if there is no delivery.
func record(d *longshore.Delivery) *kgo.Record {
	if d == nil {
		return nil
	}
	r, _ := d.Native().(*kgo.Record)
	return r
}

// Ack marks the record done. The next commit carries it.
func (p *partition) Ack(_ context.Context, token uint64) error {
	p.mu.Lock()
	if err := p.claim(token); err != nil {
		p.mu.Unlock()
		return err
	}
	if !p.with.src.cast {
		p.ledger.acked = append(p.ledger.acked, p.t.Held(token))
	}
	p.outputs.finish(token, p.t.Held(token))
	p.t.Ack(token)
	p.settled()
	p.mu.Unlock()
	p.with.settled.add(1)
	return nil
}

// Nack keeps the record here and hands it out again after delay. It stays not done, so it is
// redelivered by the next owner if this member ends before.
func (p *partition) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.claim(token); err != nil {
		return err
	}
	d := p.t.Held(token)
	p.t.Hold(token, nil)
	p.outputs.discard(token)
	if attempt <= 0 {
		attempt = d.Attempt + 1
	}
	p.t.Retried(token, attempt)
	p.settled()
	if p.state != assigned {
		return nil // the next owner has it
	}
	e := repeat{seq: token, rec: record(d), attempt: attempt}
	if delay <= 0 {
		p.again.again(e)
		p.enqueue()
		return nil
	}
	p.again.later(e, delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again.came(token)
		if p.state == assigned {
			p.again.again(e)
			p.enqueue()
		}
	})
	return nil
}

// claim checks that the token is in hand here.
func (p *partition) claim(token uint64) error {
	switch {
	case p.state == released:
		return longshore.ErrLost
	case !p.t.Has(token) || p.t.Held(token) == nil:
		return longshore.ErrSettled
	}
	return nil
}

// settled counts one that is no longer in hand.
func (p *partition) settled() {
	p.out--
	p.unblock()
	if p.state != assigned && p.out == 0 {
		signal(p.with.settled.moved)
	}
}

// Reject is not possible: a log has no dead-letter destination.
func (p *partition) Reject(context.Context, uint64, error) error {
	return unsupported("reject a record of "+p.with.src.title(), p.key.topic, "Kafka has no dead-letter destination of its own",
		"set the container's DeadLetter.To to a topic")
}

// Extend is neither possible nor needed.
func (p *partition) Extend(context.Context, uint64, time.Duration) error {
	return unsupported("extend a record of "+p.with.src.title(), p.key.topic, "a record is held as long as its partition is assigned", "")
}

// stopHandingOut ends the handing out of new records; what is in hand may still be settled.
func (p *partition) stopHandingOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = max(p.state, revoking)
	p.buf.drop()
	p.again.drop()
}

// release ends the assignment for its deliveries: those in hand are lost. It returns how
// many.
func (p *partition) release(cause error) int {
	p.mu.Lock()
	if p.state == released {
		p.mu.Unlock()
		return 0
	}
	p.buf.drop()
	p.again.drop()
	p.state, p.out = released, 0
	p.outputs.discardOpen()
	open := p.t.Open()
	p.mu.Unlock()
	return p.with.reports.lose(open, cause)
}

// inHand is how many deliveries are not settled.
func (p *partition) inHand() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// active reports whether records of the partition can come.
func (p *partition) active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == assigned && !p.deleted
}
