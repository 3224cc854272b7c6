package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// commitTimeout bounds one commit of the committer.
const commitTimeout = 10 * time.Second

// completed counts what was done, and wakes the committer when it is much.
func (c *consumer) completed(n int) {
	if now := c.recent.Add(int64(n)); now >= commitCount && now-int64(n) < commitCount {
		signal(c.urgent)
	}
}

// commitAll commits by time and by count.
func (c *consumer) commitAll() {
	linger := or(c.src.cfg.SettleLinger, defaultLinger)
	tick := time.NewTicker(linger)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.urgent:
		case <-c.over.Done():
			return
		}
		began, spacing := time.Now(), commitSpacing
		ctx, cancel := context.WithTimeout(c.over, commitTimeout)
		if c.commit(ctx, c.assigned()) != nil { // told inside, tried again soon
			spacing = commitRetry
		}
		cancel()
		tick.Reset(linger)
		// From start to start: a commit that takes long does not put off the next.
		gap := time.NewTimer(min(spacing, linger) - time.Since(began))
		select {
		case <-gap.C:
		case <-c.over.Done():
			gap.Stop()
			return
		}
	}
}

// pending is one partition in a commit.
type pending struct {
	p     *partition
	s     offsets.Snapshot
	acked int // how many of p.acked it carries
}

// commit sends the newest state of those that have changed, one commit at a time. A
// failure is never the end: the state stays, and the next commit carries it.
func (c *consumer) commit(ctx context.Context, ps []*partition) error {
	if c.src.cast {
		return nil
	}
	select {
	case c.commits <- struct{}{}:
		defer func() { <-c.commits }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.recent.Store(0)
	batch := map[tp]*pending{}
	for _, p := range ps {
		if !c.committable(p) { // it went while others committed
			continue
		}
		if one := p.uncommitted(); one != nil {
			batch[tp{p.key.topic, p.key.num}] = one
		}
	}
	var failed error
	for _, part := range parts(batch) {
		if err := c.send(ctx, part); err != nil && (failed == nil || passes(err) && !passes(failed)) {
			failed = err
		}
	}
	return failed
}

// commitBytes is how much text about what is done goes into one commit. The coordinator
// writes a commit as one batch, and refuses it whole where that is larger than its topic
// allows, 1 MiB by default: 300 partitions, each within its own limit, never got a
// position again.
const commitBytes = 256 << 10

// parts cuts a commit into those that the coordinator can write.
func parts(batch map[tp]*pending) (all []map[tp]*pending) {
	size := commitBytes
	for k, one := range batch {
		n := len(one.s.Saved) + len(k.topic) + entryBytes
		if size += n; size > commitBytes {
			all, size = append(all, map[tp]*pending{}), n
		}
		all[len(all)-1][k] = one
	}
	return all
}

// entryBytes is about what a position takes beside its text and its topic.
const entryBytes = 128

// uncommitted returns what the broker does not have yet.
func (p *partition) uncommitted() *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.t.Version() == p.committed || p.t.Base() < 0 {
		return nil
	}
	return &pending{p: p, s: p.t.Snapshot(p.budget, p.mark), acked: len(p.acked)}
}

func (c *consumer) send(ctx context.Context, batch map[tp]*pending) error {
	began := c.operations.Begin()
	resp, failed := c.commitViaClient(ctx, batch)
	if errors.Is(failed, errJoining) {
		resp, failed = c.commitDirect(ctx, batch)
	}
	if failed == nil {
		failed = c.answered(batch, resp)
	}
	if !errors.Is(failed, errJoining) { // nobody was asked
		c.operations.End(longshore.OperationAck, began, codeOr(failed))
	}
	if failed != nil && !errors.Is(failed, context.Canceled) {
		c.trouble("commit", transport.Event{Kind: transport.EventNotice, Err: failed,
			Text: fmt.Sprintf("%s: a commit failed: %v; it is tried again with the next", c.src.title(), failed)})
	}
	return failed
}

// answered looks at each partition: the whole says nothing of its parts.
func (c *consumer) answered(batch map[tp]*pending, resp *kmsg.OffsetCommitResponse) error {
	var failed error
	for _, t := range resp.Topics {
		for i := range t.Partitions {
			one := batch[tp{t.Topic, t.Partitions[i].Partition}]
			if one == nil {
				continue
			}
			delete(batch, tp{t.Topic, t.Partitions[i].Partition})
			err := one.p.answered(one, kerr.ErrorForCode(t.Partitions[i].ErrorCode))
			if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) {
				c.markBroken(t.Topic)
			}
			if err != nil && (failed == nil || passes(err) && !passes(failed)) {
				failed = c.src.b.failure("commit "+one.p.key.String()+" for "+c.src.title(), c.src.name(), err)
			}
		}
	}
	maps.DeleteFunc(batch, func(_ tp, one *pending) bool { return !c.committable(one.p) }) // left out on purpose
	if failed == nil && len(batch) > 0 {
		failed = &longshore.Error{Code: longshore.CodeSettle, Op: "commit for " + c.src.title(), Source: c.src.name(),
			Err: fmt.Errorf("the answer leaves out %d partitions", len(batch))}
	}
	return failed
}

func (p *partition) answered(one *pending, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.committed, p.sent, p.forgotten = one.s.Version, one.s.Offset, one.s.Forgotten
		n := min(one.acked, len(p.acked))
		rest := copy(p.acked, p.acked[n:])
		clear(p.acked[rest:])
		if p.acked = p.acked[:rest]; rest == 0 && cap(p.acked) > maxIdleAcked {
			p.acked = nil
		}
		p.opened() // where too much was uncommitted
		return nil
	}
	if savesTooMuch(err) {
		// This broker allows less: save less. 0 is a plain commit.
		p.budget /= 2
		if p.budget < 64 {
			p.budget = 0
		}
	}
	return err
}

// maxIdleAcked is the capacity that is kept for the next deliveries.
const maxIdleAcked = 4096

// savesTooMuch: the text beside the position is too long, or all of them together.
func savesTooMuch(err error) bool {
	return errors.Is(err, kerr.OffsetMetadataTooLarge) || errors.Is(err, kerr.InvalidCommitOffsetSize) ||
		errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// flushed reports what was lost since the last Flush.
func (c *consumer) flushed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.failed
	c.failed = 0
	if n == 0 {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeSettle, Op: "flush " + c.src.title(), Source: c.src.name(),
		Err: fmt.Errorf("%d acknowledged records were not committed before their partitions went away; they come again", n)}
}

// trouble tells of something that repeats at most once a minute.
func (c *consumer) trouble(kind string, e transport.Event) {
	now := time.Now()
	c.mu.Lock()
	last := c.troubles[kind]
	if quiet := !last.IsZero() && now.Sub(last) < time.Minute; quiet {
		c.mu.Unlock()
		return
	}
	c.troubles[kind] = now
	c.mu.Unlock()
	c.tell.event(e)
}
