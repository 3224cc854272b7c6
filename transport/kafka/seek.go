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
)

// Partitions counts the partitions that this member has.
func (c *consumer) Partitions() int { return c.assignments.count() }

// Seek moves the position of this member's own partitions. The member stays in the group,
// whose generation guards the commit: one that lost its partitions meanwhile moves nothing.
func (c *consumer) Seek(ctx context.Context, to transport.Position, drain time.Duration, fenced func()) ([]transport.Moved, error) {
	// The position of a broadcast is in memory only, and every instance has its own.
	if c.src.cast {
		return nil, unsupported("seek in "+c.src.title(), c.src.name(), "a broadcast has no position in common", "")
	}
	nums := map[string][]int32{}
	for _, p := range c.assignments.all() {
		if (to.Topic == "" || to.Topic == p.key.topic) && (to.Partition < 0 || to.Partition == p.key.num) {
			nums[p.key.topic] = append(nums[p.key.topic], p.key.num)
		}
	}
	if len(nums) == 0 {
		return nil, &longshore.Error{Code: longshore.CodeNotFound, Op: "seek in " + c.src.title(), Source: c.src.name(),
			Err: errors.New("no such partition is assigned to this member"), Hint: "another instance may have it"}
	}
	// All targets first: after an error the positions are as they were.
	at, err := c.targets(ctx, nums, to)
	if err != nil {
		return nil, err
	}
	// Nothing of them starts from here on, and fenced gives back what no handler has. Only then
	// does it make sense to wait for handlers.
	ps := c.assignments.retire(nums)
	fenced()
	c.assignments.drained(ps, drain)
	moved, err := c.move(ctx, ps, at)
	// What the handlers of other partitions have settled meanwhile waits for a commit.
	signal(c.with.settled.urgent)
	c.flow.wake()
	return moved, err
}

// targets are the offsets to go on at, within the logs.
func (c *consumer) targets(ctx context.Context, nums map[string][]int32, to transport.Position) (map[tp]int64, error) {
	list := func(at int64) (map[tp]int64, error) {
		found, err := cluster.ListOffsets(ctx, c.cl, nums, at, c.src.committedOnly())
		if err != nil {
			err = c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
		}
		return found, err
	}
	// Both ends are asked for, also where an offset was given: a position outside of the log would make
	// the client start over at its reset policy, silently.
	starts, err := list(cluster.Oldest)
	if err != nil {
		return nil, err
	}
	ends, err := list(cluster.Newest)
	if err != nil {
		return nil, err
	}
	var then map[tp]int64
	if !to.Time.IsZero() {
		if then, err = list(to.Time.UnixMilli()); err != nil {
			return nil, err
		}
	}
	at := map[tp]int64{}
	for k := range cluster.Each(nums) {
		start, ok1 := starts[k]
		end, ok2 := ends[k]
		offset, ok3 := then[k]
		if !ok1 || !ok2 || !ok3 && !to.Time.IsZero() {
			return nil, &longshore.Error{Code: longshore.CodeUnreachable, Op: "seek in " + c.src.title(), Source: c.src.name(),
				Err: fmt.Errorf("the ends of %s/%d are not known", k.Topic, k.Num), Hint: "try again when its leader answers"}
		}
		if at[k] = target(to, start, end, offset); at[k] < start || at[k] > end {
			return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "seek in " + c.src.title(), Source: c.src.name(),
				Err: fmt.Errorf("offset %d of %s/%d is not in the log (%d to %d)", at[k], k.Topic, k.Num, start, end), Hint: "use start or end"}
		}
	}
	return at, nil
}

// target is where a position lies in a log; then is what the log has for its time.
func target(to transport.Position, start, end, then int64) int64 {
	switch {
	case to.Start:
		return start
	case to.End, !to.Time.IsZero() && then < 0: // all records are older
		return end
	case !to.Time.IsZero():
		return then
	}
	return to.Offset
}

// move commits the new positions and lets reading go on there; if that fails, where it was.
// No other commit comes between: it would carry the old position.
func (c *consumer) move(ctx context.Context, ps []*partition, at map[tp]int64) ([]transport.Moved, error) {
	release, err := c.committer.exclude(ctx)
	if errors.Is(err, longshore.ErrClosed) {
		return nil, err
	}
	if err != nil {
		if c.committer.tx != nil { // a transaction may have what the partitions have published: they stay what they are until it has ended
			turn, over := c.committer.exclude(context.WithoutCancel(ctx))
			if over != nil {
				return nil, over
			}
			defer turn()
		}
		c.swap(ps, nil)
		return nil, err
	}
	defer release()
	if c.committer.tx != nil { // what is done goes out before its records are moved over
		for _, p := range ps { // an Ack from here on would be in no commit, and what it has published in no transaction
			p.release(c.src.taken(p.key, "its position was moved"))
		}
		if err := c.committer.commitNow(ctx, ps); err != nil {
			c.swap(ps, nil)
			return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
		}
	}
	var moved []transport.Moved
	batch := map[tp]*pending{}
	next := map[*partition]*partition{}
	for _, p := range ps {
		k := p.key.tp()
		if c.assignments.get(k) != p { // it went to another member meanwhile
			continue
		}
		// -1: the epoch of the record there is not known, and the client does without.
		// Touch makes the new state one that has to be committed though nothing is done in it yet.
		n := p.successor(at[k], -1)
		n.t.Touch()
		next[p], batch[k] = n, n.uncommitted()
		p.mu.Lock()
		moved = append(moved, transport.Moved{Topic: k.Topic, Partition: k.Num, From: max(p.t.Base(), 0), To: at[k]})
		p.mu.Unlock()
	}
	// Where some have left and some have not, the rest is moved: the answer lists what was.
	if len(next) == 0 {
		return nil, &longshore.Error{Code: longshore.CodeFenced, Op: "seek in " + c.src.title(), Source: c.src.name(),
			Err: errors.New("the partitions went to other members meanwhile"), Hint: "try again there"}
	}
	// The commit is the point of no return. Before it everything goes on where it was; after it even a
	// crash finds the new position.
	if err := c.committer.send(ctx, batch); err != nil {
		c.swap(ps, nil)
		return nil, c.src.b.failure("seek in "+c.src.title(), c.src.name(), err)
	}
	c.swap(ps, next)
	return moved, nil
}

// swap puts other states in the places of retired partitions and lets the client fetch from
// there: those of next, or new ones where the partitions were.
func (c *consumer) swap(ps []*partition, next map[*partition]*partition) {
	// No poll runs meanwhile: one would bring records of the old position to the new state.
	c.assignments.gate.enter()
	defer c.assignments.gate.leave()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	var olds []*partition
	for _, p := range ps {
		n := next[p]
		if n != nil {
			p.supersede() // the new position says what is to be read
		}
		if !c.life.active() { // the consumer closes: what p has published goes with its last commit
			continue
		}
		if n == nil {
			n = p.continued()
		}
		if !c.assignments.replace(p, n) { // it has gone to another member, which does it again
			n.mu.Lock()
			n.outputs.forget()
			n.mu.Unlock()
			continue
		}
		if !c.life.active() { // since then
			n.stopHandingOut()
		}
		olds = append(olds, p)
		if n.t.Base() < 0 { // nothing was read of it yet
			continue
		}
		if offsets[p.key.topic] == nil {
			offsets[p.key.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.key.topic][p.key.num] = kgo.EpochOffset{Epoch: n.t.Epoch(), Offset: n.t.Base()}
	}
	// The client drops what it has buffered of these partitions and fetches from here.
	if len(offsets) > 0 {
		c.cl.SetOffsets(offsets)
	}
	for _, p := range ps {
		p.endHold()
	}
	// What handlers still have of the old position is lost: its records may be read again.
	// Last, so that a delivery that is lost now finds the successor in place: its record comes from it.
	for _, p := range olds {
		p.release(c.src.taken(p.key, "its position was moved"))
		p.reportUncommitted()
		p.supersede()
	}
}

// continued is a successor that goes on where the partition is.
func (p *partition) continued() *partition {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.t.Snapshot(p.ledger.budget, p.mark)
	n := p.successor(s.Offset, s.Epoch)
	inherit(&n.t, n.mark, s.Saved, s.Offset)
	n.t.Touch()
	// What the state of n leaves out is read and handled again, and publishes again.
	n.outputs.done = p.outputs.covered(&s, p.mark)
	p.outputs.leave(n.outputs.done)
	return n
}

// supersede leaves everything that is not committed to the successor.
func (p *partition) supersede() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.acked, p.ledger.committed = nil, p.t.Version()
	p.outputs.forget()
}
