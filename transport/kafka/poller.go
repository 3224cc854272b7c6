package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// poller moves what the client has fetched to its partitions, as fast as they need it. It
// runs on one goroutine.
type poller struct {
	src         *Group               // for names in errors
	cl          *kgo.Client          // polled by this goroutine alone
	life        *lifetime            // ended by an error that no retry cures
	turns       *turns               // whether a pause stops it
	flow        *flow                // which partitions have enough
	assignments *assignments         // where records go; those of a partition that left are dropped
	unpack      *cluster.Unpacker    // bounds what compressed batches may become in memory
	health      *topicHealth         // takes what a fetch complains of
	reports     *reports             // skipped records and polls that fail
	operations  transport.Operations // times each poll
}

const (
	// holdAfter is how long the others wait for a partition that has much: at full speed
	// much is gone in a moment, and is not worth a hold.
	holdAfter = 100 * time.Millisecond
	// errorPause is between polls that return nothing but errors: the client would return a
	// thousand a second.
	errorPause = 100 * time.Millisecond
)

// run polls until Cancel.
func (o *poller) run() {
	for o.waitNeeded() {
		var errs []kgo.FetchError
		records := 0
		// The gate keeps polls and changes of assignments apart: records of a poll that began before a seek
		// must not reach the state after it.
		o.assignments.gate.poll(o.life.stop, func(ctx context.Context) {
			began := o.operations.Begin()
			fs := o.cl.PollFetches(ctx)
			errs = fs.Errors()
			if ctx.Err() == nil { // otherwise it was called off, by us
				o.operations.End(longshore.OperationReceive, began, codeOr(fs.Err()))
			}
			records = o.accept(fs)
			// From here on the decompressed batches are counted as the partitions' and no longer as the client's.
			o.unpack.Polled()
		})
		for _, e := range errs {
			o.health.fetchFailed(e)
		}
		if records == 0 && len(errs) > 0 && !errors.Is(errs[0].Err, context.Canceled) {
			o.rest(errorPause)
		}
	}
}

// waitNeeded returns when records are needed; false at Cancel.
func (o *poller) waitNeeded() bool {
	began := time.Now()
	for o.life.stop.Err() == nil {
		ok, again := o.mayPoll(time.Since(began))
		if ok {
			return true
		}
		var due <-chan time.Time
		if again > 0 {
			due = time.After(again)
		}
		select {
		case <-o.flow.needed:
		case <-due:
		case <-o.life.stop.Done():
		}
	}
	return false
}

// mayPoll reports whether a partition needs records, and keeps the client from fetching for
// those that have enough. waited is for how long it has said no because of them.
func (o *poller) mayPoll(waited time.Duration) (ok bool, again time.Duration) {
	// The client goes on fetching up to its own buffer; what is not polled stays there, bounded.
	if o.turns.isPaused() || o.flow.full() {
		return false, 0
	}
	ps := o.assignments.all()
	// Without partitions a poll must run: it is where the client reports that the group failed.
	needed := len(ps) == 0
	var hold []*partition
	for _, p := range ps {
		p.mu.Lock()
		needs, much := p.buf.needs()
		p.mu.Unlock()
		needed = needed || needs
		if much {
			hold = append(hold, p)
		}
	}
	if !needed {
		return false, 0
	}
	// The partitions with little wait for holdAfter, in which those with much may be worked off:
	// then nothing has to be paused and resumed.
	if len(hold) > 0 && waited < holdAfter {
		return false, holdAfter - waited
	}
	for _, p := range hold {
		p.mu.Lock()
		if p.state != released {
			p.buf.hold()
		}
		p.mu.Unlock()
	}
	return true, 0
}

// rest waits, at most until nothing may be polled any more.
func (o *poller) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.life.stop.Done():
	}
}

// accept gives the records to their partitions. The gate is held.
func (o *poller) accept(fs kgo.Fetches) (records int) {
	at := time.Now()
	for i := range fs {
		for j := range fs[i].Topics {
			t := &fs[i].Topics[j]
			for k := range t.Partitions {
				records += o.acceptPartition(t.Topic, &t.Partitions[k], at)
			}
		}
	}
	return records
}

// acceptPartition gives what a fetch brought of a partition to its assignment. Records below
// what was read before show that the log was cut off or that its topic was made again.
func (o *poller) acceptPartition(topic string, fp *kgo.FetchPartition, at time.Time) (records int) {
	p := o.assignments.get(tp{Topic: topic, Num: fp.Partition})
	if p == nil {
		return 0
	}
	var big *kgo.ErrDecompressTooLarge
	if errors.As(fp.Err, &big) {
		o.oversized(p, big, at)
		return 1
	}
	// Offsets only grow in a log that is whole. A smaller one is the only sign that the client gives of
	// an unclean election or a topic that was made again under its name.
	if len(fp.Records) > 0 && fp.Records[0].Offset < p.expected() {
		if p = o.rewound(p, fp.Records[0].Offset); p.expected() < fp.Records[0].Offset {
			return 0 // they come once more, after what is read again
		}
	}
	p.accept(fp, at)
	if fp.Err == nil && len(fp.Records) > 0 && o.reports.troubles.Load() > 0 {
		o.reports.over(conditionFetch(p.key.tp()), fmt.Sprintf("%s: %s is read again", o.src.title(), p.key))
		o.reports.over(conditionTopic(topic), fmt.Sprintf("%s: topic %q is read again", o.src.title(), topic))
	}
	return len(fp.Records)
}

// rewound starts the assignment again: the log was cut off, or its topic was recreated,
// below what was read. What is in hand belongs to records that no longer exist, or are read
// again. Reading goes on at the cut, or where something is not done below it, which the
// client would pass over.
func (o *poller) rewound(p *partition, to int64) *partition {
	p.mu.Lock()
	if p.state != assigned { // the next owner will see it
		p.mu.Unlock()
		return p
	}
	next := p.before(to)
	p.mu.Unlock()
	o.reports.Event(transport.Event{Kind: transport.EventSkipped, Skipped: transport.SkippedTruncated,
		Text: fmt.Sprintf("%s: the log of %s ends before offset %d, which was to be read next; reading on at %d", o.src.title(), p.key, p.expected(), next.next)})
	p.release(o.src.taken(p.key, "the log was cut off below it"))
	p.reportUncommitted()
	o.assignments.replace(p, next)
	if next.next < to {
		o.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.key.topic: {p.key.num: {Epoch: next.t.Epoch(), Offset: next.next}}})
	}
	return next
}

// accept appends what was fetched, if the offsets follow on.
func (p *partition) accept(fp *kgo.FetchPartition, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != assigned {
		return
	}
	if fp.Err == nil || len(fp.Records) > 0 {
		p.logEnd = fp.HighWatermark
		if p.with.src.cfg.Isolation == ReadCommitted {
			// With open transactions the log ends later than what may be read; the difference is no backlog.
			p.logEnd = fp.LastStableOffset
		}
	}
	if len(fp.Records) == 0 {
		return
	}
	p.startAt(fp.Records[0].Offset)
	if first := fp.Records[0].Offset; first > p.next && fp.LogStartOffset > p.next {
		// Retention has taken what was next. Any other gap is compaction or a marker.
		p.with.reports.Event(p.with.src.expired(p.key, p.next, min(first, fp.LogStartOffset)))
	}
	last := fp.Records[len(fp.Records)-1]
	p.next = last.Offset + 1
	p.buf.push(fp.Records, at)
	p.enqueue()
}

// startAt is where a partition begins whose leader could not say. The lock is held.
func (p *partition) startAt(offset int64) {
	if p.next >= 0 {
		return
	}
	p.next = offset
	p.t = offsets.New(p.next, -1)
	p.t.Touch() // so that the position is committed
	p.with.src.starts.set(p.key, p.next)
}

// before is a successor that knows what is done below an offset and nothing else. The lock
// is held.
func (p *partition) before(to int64) *partition {
	s := offsets.Snapshot{Offset: to, Epoch: -1}
	if p.t.Base() < to {
		s = p.t.Snapshot(offsets.DefaultBudget, p.mark)
	}
	next := p.successor(s.Offset, s.Epoch)
	if saved, ok := offsets.Decode(s.Saved, p.mark, s.Offset); ok {
		saved.Cut(to)
		next.t.Inherit(saved)
	}
	next.t.Touch()
	return next
}

// expected is the offset that the next fetched record should have.
func (p *partition) expected() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// expired is the event of records that retention deleted before they were read.
func (s *Group) expired(key partitionOf, from, to int64) transport.Event {
	return transport.Event{Kind: transport.EventSkipped, Skipped: transport.SkippedExpired,
		Text: fmt.Sprintf("%s: %d offsets of %s, %d to %d, were deleted before they were read; check the topic's retention", s.title(), to-from, key, from, to-1)}
}
