package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Partitions tells how many partitions this member has.
func (c *consumer) Partitions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parts)
}

// Seek moves the position of this member's own partitions. The member stays in the
// group, whose generation guards the commit: one that lost its partitions meanwhile
// moves nothing.
func (c *consumer) Seek(ctx context.Context, to transport.Position, drain time.Duration, fenced func()) ([]transport.Moved, error) {
	if c.src.cast {
		return nil, unsupported("seek in "+c.src.title(), c.src.name(), "a broadcast has no position in common", "")
	}
	nums := map[string][]int32{}
	for _, p := range c.assigned() {
		if (to.Topic == "" || to.Topic == p.key.topic) && (to.Partition < 0 || to.Partition == p.key.num) {
			nums[p.key.topic] = append(nums[p.key.topic], p.key.num)
		}
	}
	if len(nums) == 0 {
		return nil, &longshore.Error{Code: longshore.CodeNotFound, Op: "seek in " + c.src.title(), Source: c.src.name(),
			Err: errors.New("no such partition is assigned to this member"), Hint: "another instance may have it"}
	}
	at, err := c.targets(ctx, nums, to)
	if err != nil {
		return nil, err
	}
	ps := c.retire(nums)
	fenced()
	c.drained(ps, drain)
	moved, err := c.move(ctx, ps, at)
	signal(c.urgent)
	signal(c.needsData)
	return moved, err
}

// targets are the offsets to go on at, within the logs.
func (c *consumer) targets(ctx context.Context, nums map[string][]int32, to transport.Position) (map[tp]int64, error) {
	starts, err := c.listOffsets(ctx, nums, -2)
	if err != nil {
		return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
	}
	ends, err := c.listOffsets(ctx, nums, -1)
	if err != nil {
		return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
	}
	var then map[tp]int64
	if !to.Time.IsZero() {
		if then, err = c.listOffsets(ctx, nums, to.Time.UnixMilli()); err != nil {
			return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
		}
	}
	at := map[tp]int64{}
	for k := range each(nums) {
		start, ok1 := starts[k]
		end, ok2 := ends[k]
		offset, ok3 := then[k]
		if !ok1 || !ok2 || !ok3 && !to.Time.IsZero() {
			return nil, &longshore.Error{Code: longshore.CodeUnreachable, Op: "seek in " + c.src.title(), Source: c.src.name(),
				Err: fmt.Errorf("the ends of %s/%d are not known", k.topic, k.num), Hint: "try again when its leader answers"}
		}
		switch {
		case to.Start:
			at[k] = start
		case to.End:
			at[k] = end
		case !to.Time.IsZero():
			at[k] = end // all records are older
			if offset >= 0 {
				at[k] = offset
			}
		default:
			at[k] = to.Offset
		}
		if at[k] < start || at[k] > end {
			return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "seek in " + c.src.title(), Source: c.src.name(),
				Err: fmt.Errorf("offset %d of %s/%d is not in the log (%d to %d)", at[k], k.topic, k.num, start, end), Hint: "use start or end"}
		}
	}
	return at, nil
}

// move commits the new positions and lets reading go on there; if that fails, where
// it was. No other commit comes between: it would carry the old position.
func (c *consumer) move(ctx context.Context, ps []*partition, at map[tp]int64) ([]transport.Moved, error) {
	select {
	case c.commits <- struct{}{}:
		defer func() { <-c.commits }()
	case <-ctx.Done():
		c.swap(ps, nil)
		return nil, ctx.Err()
	case <-c.over.Done():
		return nil, longshore.ErrClosed
	}
	var moved []transport.Moved
	batch := map[tp]*pending{}
	next := map[*partition]*partition{}
	c.mu.Lock()
	for _, p := range ps {
		k := tp{p.key.topic, p.key.num}
		if c.parts[k] == p { // else it went to another member meanwhile
			next[p] = nil
		}
	}
	c.mu.Unlock()
	for p := range next {
		k := tp{p.key.topic, p.key.num}
		n := newPartition(c, p.key, at[k], -1)
		n.assignmentToken = p.assignmentToken
		n.t.Touch()
		next[p] = n
		batch[k] = n.uncommitted()
		p.mu.Lock()
		moved = append(moved, transport.Moved{Topic: k.topic, Partition: k.num, From: max(p.t.Base(), 0), To: at[k]})
		p.mu.Unlock()
	}
	if len(next) == 0 {
		return nil, &longshore.Error{Code: longshore.CodeFenced, Op: "seek in " + c.src.title(), Source: c.src.name(),
			Err: errors.New("the partitions went to other members meanwhile"), Hint: "try again there"}
	}
	if err := c.send(ctx, batch); err != nil {
		c.swap(ps, nil)
		return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
	}
	c.swap(ps, next)
	return moved, nil
}

// swap puts other states in the places of retired partitions and lets the client
// fetch from there: those of next, or anew where they were.
func (c *consumer) swap(ps []*partition, next map[*partition]*partition) {
	c.gate.enter()
	defer c.gate.leave()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	resume := map[string][]int32{}
	var olds []*partition
	for _, p := range ps {
		k := tp{p.key.topic, p.key.num}
		n := next[p]
		p.mu.Lock()
		if n == nil {
			s := p.t.Snapshot(p.budget, p.mark)
			n = newPartition(c, p.key, s.Offset, s.Epoch)
			n.inherit(s.Saved, s.Offset)
			n.t.Touch()
		} else {
			p.acked = nil // the new position says what is to be read
			p.committed = p.t.Version()
		}
		n.assignmentToken = p.assignmentToken
		held := p.held
		p.held = false
		p.mu.Unlock()
		c.mu.Lock()
		ours := c.parts[k] == p && !c.closed && !c.canceled && c.end == nil
		if ours {
			c.parts[k] = n
		}
		c.mu.Unlock()
		if held {
			resume[k.topic] = append(resume[k.topic], k.num)
		}
		if !ours {
			continue
		}
		olds = append(olds, p)
		if n.t.Base() < 0 { // nothing was read of it yet
			continue
		}
		if offsets[k.topic] == nil {
			offsets[k.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[k.topic][k.num] = kgo.EpochOffset{Epoch: n.t.Epoch(), Offset: n.t.Base()}
	}
	if len(offsets) > 0 {
		c.cl.SetOffsets(offsets)
	}
	if len(resume) > 0 {
		c.cl.ResumeFetchPartitions(resume)
	}
	for _, p := range olds {
		p.close(c.taken(p.key, "its position was moved"))
		c.forfeit(p)
		p.mu.Lock()
		p.committed = p.t.Version() // what took its place commits
		p.mu.Unlock()
	}
}
