package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// gate makes "poll and register" one step for those who take partitions away: a
// batch that is polled under one assignment must not be registered under the next
// (records were lost that way). The client's own gate would also hold up the
// partitions that stay while others are drained.
type gate struct {
	mu sync.Mutex // held while polling and registering, or changing the assignment

	state   sync.Mutex
	waiting int
	cancel  context.CancelFunc
	free    chan struct{}
}

// enter waits for the poll that runs, which is cut short, and keeps others out.
func (g *gate) enter() {
	g.state.Lock()
	g.waiting++
	if g.free == nil {
		g.free = make(chan struct{})
	}
	if g.cancel != nil {
		g.cancel()
	}
	g.state.Unlock()
	g.mu.Lock()
}

func (g *gate) leave() {
	g.mu.Unlock()
	g.state.Lock()
	defer g.state.Unlock()
	if g.waiting--; g.waiting == 0 {
		close(g.free)
		g.free = nil
	}
}

// poll runs f unless somebody wants to enter, who comes first.
func (g *gate) poll(ctx context.Context, f func(ctx context.Context)) {
	g.state.Lock()
	if free := g.free; free != nil {
		g.state.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.cancel = cancel
	g.state.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	f(ctx)
}

// errorPause is between polls that bring nothing but errors: the client would
// bring a thousand a second.
const errorPause = 100 * time.Millisecond

// pollAll moves what the client has fetched to the partitions, until Cancel.
func (c *consumer) pollAll() {
	for c.waitHungry() {
		var errs []kgo.FetchError
		records := 0
		c.gate.poll(c.stop, func(ctx context.Context) {
			began := c.operations.Begin()
			fs := c.cl.PollFetches(ctx)
			errs = fs.Errors()
			if ctx.Err() == nil { // else it was called off, by us
				c.operations.End(longshore.OperationReceive, began, codeOr(fs.Err()))
			}
			records = c.accept(fs)
			c.unpack.polled()
		})
		c.fetchErrors(errs)
		if records == 0 && len(errs) > 0 && !errors.Is(errs[0].Err, context.Canceled) {
			c.rest(errorPause)
		}
	}
}

// waitHungry returns when polling is allowed; false at Cancel.
func (c *consumer) waitHungry() bool {
	began := time.Now()
	for c.stop.Err() == nil {
		ok, again := c.mayPoll(time.Since(began))
		if ok {
			return true
		}
		var due <-chan time.Time
		if again > 0 {
			due = time.After(again)
		}
		select {
		case <-c.needsData:
		case <-due:
		case <-c.stop.Done():
		}
	}
	return false
}

func (c *consumer) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.stop.Done():
	}
}

// accept gives the records to their partitions. The gate is held.
func (c *consumer) accept(fs kgo.Fetches) (records int) {
	at := time.Now()
	for i := range fs {
		for j := range fs[i].Topics {
			t := &fs[i].Topics[j]
			for k := range t.Partitions {
				fp := &t.Partitions[k]
				c.mu.Lock()
				p := c.parts[tp{t.Topic, fp.Partition}]
				c.mu.Unlock()
				if p == nil {
					continue
				}
				var big *kgo.ErrDecompressTooLarge
				if errors.As(fp.Err, &big) {
					records++
					c.oversized(p, big, at)
					continue
				}
				if len(fp.Records) > 0 && fp.Records[0].Offset < p.expected() {
					if p = c.rewound(p, fp.Records[0].Offset); p.expected() < fp.Records[0].Offset {
						continue // they come once more, behind what comes again
					}
				}
				records += len(fp.Records)
				p.accept(fp, at)
			}
		}
	}
	return records
}

// accept appends what was fetched, if the offsets follow on.
func (p *partition) accept(fp *kgo.FetchPartition, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.leaving {
		return
	}
	if fp.Err == nil || len(fp.Records) > 0 {
		p.logStart, p.logEnd = fp.LogStartOffset, fp.HighWatermark
		if p.c.src.cfg.Isolation == ReadCommitted {
			p.logEnd = fp.LastStableOffset
		}
	}
	if len(fp.Records) == 0 {
		return
	}
	p.startAt(fp.Records[0].Offset)
	if first := fp.Records[0].Offset; first > p.next && fp.LogStartOffset > p.next {
		// Retention has taken what was next. Any other gap is compaction or a marker.
		p.c.skipped(p.key, p.next, min(first, fp.LogStartOffset))
	}
	last := fp.Records[len(fp.Records)-1]
	p.next = last.Offset + 1
	p.grow(p.wait.push(fp.Records, at))
	p.enqueue()
}

// startAt is where a partition begins of which nobody could tell. The lock is held.
func (p *partition) startAt(offset int64) {
	if p.next >= 0 {
		return
	}
	p.next = offset
	p.t = offsets.New(p.next, -1)
	p.t.Touch() // commit it
	p.c.src.starts.set(p.key, p.next)
}

// rewound: the log was cut off, or made anew, below what was read. What is out
// belongs to records that exist no more, or comes again, so the assignment starts anew:
// at the cut, or where something is not done below it, which the client would pass over.
func (c *consumer) rewound(p *partition, to int64) *partition {
	p.mu.Lock()
	if p.closed || p.leaving { // the next owner will see it
		p.mu.Unlock()
		return p
	}
	next := p.before(to)
	p.mu.Unlock()
	c.tell.event(transport.Event{Kind: transport.EventSkipped, Skipped: transport.SkippedTruncated,
		Text: fmt.Sprintf("%s: the log of %s ends before offset %d, which was to be read next; reading on at %d", c.src.title(), p.key, p.expected(), next.next)})
	p.close(c.taken(p.key, "the log was cut off below it"))
	c.forfeit(p)
	c.mu.Lock()
	c.parts[tp{p.key.topic, p.key.num}] = next
	c.mu.Unlock()
	if next.next < to {
		c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.key.topic: {p.key.num: {Epoch: next.t.Epoch(), Offset: next.next}}})
	}
	return next
}

// before is a new state of the partition that knows what is done below an offset and
// nothing else. The lock is held.
func (p *partition) before(to int64) *partition {
	s := offsets.Snapshot{Offset: to, Epoch: -1}
	if p.t.Base() < to {
		s = p.t.Snapshot(offsets.DefaultBudget, p.mark)
	}
	next := newPartition(p.c, p.key, s.Offset, s.Epoch)
	if saved, ok := offsets.Decode(s.Saved, p.mark, s.Offset); ok {
		saved.Cut(to)
		next.t.Inherit(saved)
	}
	next.assignmentToken, next.budget = p.assignmentToken, p.budget
	next.t.Touch()
	return next
}

func (p *partition) expected() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// skipped tells of records that were lost to retention before they were read.
func (c *consumer) skipped(key partitionOf, from, to int64) {
	c.tell.event(transport.Event{Kind: transport.EventSkipped, Skipped: transport.SkippedExpired,
		Text: fmt.Sprintf("%s: %d offsets of %s, %d to %d, were deleted before they were read; check the topic's retention", c.src.title(), to-from, key, from, to-1)})
}

// String is topic/partition.
func (k partitionOf) String() string { return fmt.Sprintf("%s/%d", k.topic, k.num) }
