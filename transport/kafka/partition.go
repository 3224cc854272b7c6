package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// partition is one assignment of a partition to this member, from the reading of
// its position to its end. It is the settler of its deliveries, so a late one
// reaches the assignment it came from and never the next.
type partition struct {
	c    *consumer
	key  partitionOf
	sub  *longshore.Subscription
	mark offsets.Mark // of the topic, in what is saved

	mu      sync.Mutex
	t       offsets.Tracker
	wait    queue    // fetched, not handed out
	bytes   int64    // of wait
	again   []repeat // given back, to be handed out now
	waits   map[uint64]waiting
	out     int   // handed out and not settled
	next    int64 // offset that the next fetched record should have
	queued  bool  // in the consumer's line
	stalled bool  // the window is full
	full    bool  // has enough
	held    bool  // and the client does not fetch it
	leaving bool  // being revoked: nothing new
	closed  bool
	barrier error // reading ends here, before a batch that is too large; nil: it does not
	gone    bool  // its topic was deleted: nothing of it is committed
	drops   int   // how often what waits was forgotten

	budget    int    // characters that a commit may save
	committed uint64 // ver of the last commit that the broker has
	sent      int64  // its offset; -1 before
	forgotten int    // records that are done and that it does not carry
	acked     []*longshore.Delivery

	logStart, logEnd int64 // as the last fetch told; -1 before
	told             int   // step of the warning that was given, of the record toldOf
	toldOf           uint64
	toldSince        time.Time
	headSince        time.Time
	headSeq          uint64
	silent           time.Time // since when its leader is asked in vain; zero: it is not
	muteTold         bool

	assignmentToken *stint // of the member with the partition; a seek goes on with it
}

// stint is the time from an assignment to its revocation, over all seeks in it.
type stint struct{ _ byte }

// repeat is a record that was given back.
type repeat struct {
	seq     uint64
	rec     *kgo.Record
	attempt int
}

// waiting is one that is not due yet.
type waiting struct {
	repeat
	timer *time.Timer
}

func newPartition(c *consumer, key partitionOf, position int64, epoch int32) *partition {
	return &partition{c: c, key: key, sub: c.subscription(key), mark: c.markOf(key),
		t: offsets.New(position, epoch), next: position, budget: offsets.DefaultBudget, sent: -1, logStart: -1, logEnd: -1, assignmentToken: &stint{}}
}

// inherit takes over what an earlier owner had saved beside the position base.
func (p *partition) inherit(saved string, base int64) {
	if s, ok := offsets.Decode(saved, p.mark, base); ok {
		p.t.Inherit(s)
	}
}

// take hands out up to n records; more says whether there are others, which keeps
// the partition in the line.
func (p *partition) take(n int, out []*longshore.Delivery) (_ []*longshore.Delivery, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && !p.leaving {
		for ; n > 0 && len(p.again) > 0; n-- {
			out = append(out, p.redeliver(p.again[0], time.Now()))
			p.again = p.again[1:]
		}
		out = p.takeNew(n, out)
	}
	if p.closed || p.leaving {
		p.queued = false
		return out, false
	}
	p.stall()
	p.queued = len(p.again) > 0 || !p.wait.empty() && !p.stalled
	return out, p.queued
}

// takeNew hands out up to n of the records that wait. The lock is held, but for
// making deliveries: whoever settles meanwhile should not have to wait for that.
func (p *partition) takeNew(n int, out []*longshore.Delivery) []*longshore.Delivery {
	skipped := 0
	for n > 0 {
		room := p.room()
		if room <= 0 || p.wait.made == nil && !p.make() {
			break
		}
		ds, bytes := p.wait.pop(p.fitting(min(n, room)))
		p.shrink(bytes)
		before := len(out)
		out = p.register(ds, out)
		n -= len(out) - before
		skipped += len(ds) - (len(out) - before)
	}
	if skipped > 0 {
		p.c.completed(skipped)
	}
	return out
}

// make makes deliveries of the next records; false if there are none. It gives up
// the lock meanwhile. Only Receive takes, so nobody else hands out sequence numbers.
func (p *partition) make() bool {
	recs, at, bytes := p.wait.next(madeAtOnce)
	if len(recs) == 0 {
		return false
	}
	first, drops := p.t.Tail(), p.drops
	p.mu.Unlock()
	ds := longshore.NewDeliveries(p.c.base, p, first, len(recs))
	for i, r := range recs {
		p.fill(&ds[i], r, 1, at)
	}
	p.mu.Lock()
	if p.drops != drops {
		return false
	}
	p.wait.made, p.wait.bytes = ds, bytes
	return true
}

// register moves records from those that wait to those that are out.
func (p *partition) register(ds []longshore.Delivery, out []*longshore.Delivery) []*longshore.Delivery {
	for i := range ds {
		d := &ds[i]
		r, _ := d.Native().(*kgo.Record)
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
	d := p.delivery(e.rec, e.seq, e.attempt, now)
	d.Origin.Redelivered = true
	p.t.Hold(e.seq, d)
	p.out++
	return d
}

func (p *partition) delivery(r *kgo.Record, seq uint64, attempt int, now time.Time) *longshore.Delivery {
	d := longshore.NewDelivery(p.c.base, p, seq)
	p.fill(d, r, attempt, now)
	return d
}

func (p *partition) fill(d *longshore.Delivery, r *kgo.Record, attempt int, at time.Time) {
	decode(&d.Message, r)
	d.Attempt = attempt
	d.Origin.Subscription = p.sub
	d.Origin.Topic, d.Origin.Partition, d.Origin.Position = r.Topic, r.Partition, uint64(r.Offset) //nolint:gosec // not negative
	d.Origin.ReceivedAt = at
	d.SetNative(r)
}

// Ack marks the record done. The next commit carries it.
func (p *partition) Ack(_ context.Context, token uint64) error {
	p.mu.Lock()
	if err := p.claim(token); err != nil {
		p.mu.Unlock()
		return err
	}
	if !p.c.src.cast {
		p.acked = append(p.acked, p.t.Held(token))
	}
	p.t.Ack(token)
	p.settled()
	p.mu.Unlock()
	p.c.completed(1)
	return nil
}

// Nack keeps the record here and hands it out again after delay. It stays not done,
// so it comes again if this member ends before.
func (p *partition) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.claim(token); err != nil {
		return err
	}
	d := p.t.Held(token)
	p.t.Hold(token, nil)
	if attempt <= 0 {
		attempt = d.Attempt + 1
	}
	rec, _ := d.Native().(*kgo.Record)
	p.t.Retried(token, attempt)
	p.settled()
	if p.leaving {
		return nil // the next owner has it
	}
	e := repeat{seq: token, rec: rec, attempt: attempt}
	if delay <= 0 {
		p.repeatNow(e)
		return nil
	}
	if p.waits == nil {
		p.waits = map[uint64]waiting{}
	}
	p.waits[token] = waiting{e, time.AfterFunc(delay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waits, token)
		if !p.closed && !p.leaving {
			p.repeatNow(e)
		}
	})}
	return nil
}

// repeatNow keeps those that are due in the order of the log.
func (p *partition) repeatNow(e repeat) {
	i, _ := slices.BinarySearchFunc(p.again, e.seq, func(x repeat, seq uint64) int {
		if x.seq < seq {
			return -1
		}
		return 1
	})
	p.again = slices.Insert(p.again, i, e)
	p.enqueue()
}

// claim checks that the token is out here.
func (p *partition) claim(token uint64) error {
	switch {
	case p.closed:
		return longshore.ErrLost
	case !p.t.Has(token) || p.t.Held(token) == nil:
		return longshore.ErrSettled
	}
	return nil
}

// settled counts one that is no longer out.
func (p *partition) settled() {
	p.out--
	p.opened()
	if p.leaving && p.out == 0 {
		signal(p.c.moved)
	}
}

// Reject is not possible: a log has no dead-letter place.
func (p *partition) Reject(context.Context, uint64, error) error {
	return unsupported("reject a record of "+p.c.src.title(), p.key.topic, "Kafka has no dead-letter place of its own",
		"set the container's DeadLetter.To to a topic")
}

// Extend is neither possible nor needed.
func (p *partition) Extend(context.Context, uint64, time.Duration) error {
	return unsupported("extend a record of "+p.c.src.title(), p.key.topic, "a record is held as long as its partition is assigned", "")
}
