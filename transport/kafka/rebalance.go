package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// revoked is called when partitions go to another member, and when this one leaves.
// Running handlers may end until the drain is over; then they are lost, and what
// is done is committed before the next owner reads the position.
func (c *consumer) revoked(_ context.Context, _ *kgo.Client, m map[string][]int32) {
	ps := c.retire(m)
	if len(ps) == 0 { // also at the end of each cooperative session
		return
	}
	c.mu.Lock()
	c.surveyed = time.Time{} // perhaps their topic was deleted
	c.mu.Unlock()
	started := time.Now()
	c.announceLeave(ps)
	c.drained(ps, c.src.cfg.drain())
	for _, p := range ps {
		p.close(c.taken(p.key, "the partition went to another member before the record was done"))
	}
	ctx, cancel := context.WithTimeout(c.over, max(time.Second, min(defaultDrain, c.src.cfg.rebalance()/4)))
	defer cancel()
	_ = c.lastCommit(ctx, ps) //nolint:contextcheck // the client's context is no limit; what was not committed is reported next
	c.tellRepeats(ps)
	for _, p := range ps {
		c.forfeit(p)
	}
	c.remove(ps)
	c.tell.event(transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: %d partitions went to other members after %s", c.src.title(), len(ps), time.Since(started).Round(time.Millisecond))})
}

// fencedHint leaves the cause to the error that the client gives behind this: a login that
// is refused, say. There is none where the group alone has ended the session.
const fencedHint = "joining again; if no error follows that says why, look for a frozen process or a network gap"

// lost is called when the group has thrown this member out: its partitions are
// with others already, and nothing may be committed for them.
func (c *consumer) lost(_ context.Context, _ *kgo.Client, m map[string][]int32) {
	ps := c.retire(m)
	if len(ps) == 0 {
		return
	}
	cause := &longshore.Error{Code: longshore.CodeFenced, Op: c.src.title(), Source: c.src.name(),
		Err: fmt.Errorf("this member's session in the group is over: %w", longshore.ErrLost), Hint: fencedHint}
	handlers := 0
	for _, p := range ps {
		handlers += p.close(cause)
		c.forfeit(p)
	}
	c.remove(ps)
	c.tell.event(transport.Event{Kind: transport.EventNotice, Err: cause,
		Text: fmt.Sprintf("%s: member fenced; %d partitions lost, %d handlers cancelled (ErrLost), nothing committed for them; %s",
			c.src.title(), len(ps), handlers, fencedHint)})
}

// retire stops handing out and returns the partitions concerned.
func (c *consumer) retire(m map[string][]int32) []*partition {
	if len(m) == 0 {
		return nil
	}
	c.gate.enter()
	defer c.gate.leave()
	var ps []*partition
	for topic, nums := range m {
		for _, num := range nums {
			c.mu.Lock()
			p := c.parts[tp{topic, num}]
			c.mu.Unlock()
			if p == nil {
				continue
			}
			p.mu.Lock()
			p.leaving = true
			p.drop()
			p.mu.Unlock()
			ps = append(ps, p)
		}
	}
	return ps
}

// announceLeave lets the observer give back what no handler has: only running handlers are
// waited for. The call is direct, so that nothing starts after it.
func (c *consumer) announceLeave(ps []*partition) {
	o, ok := c.tell.obs.(transport.LeaveObserver)
	if !ok {
		return
	}
	parts := make([]transport.TopicPartition, len(ps))
	for i, p := range ps {
		parts[i] = transport.TopicPartition{Topic: p.key.topic, Partition: p.key.num}
	}
	o.Leaving(parts)
}

// remove forgets partitions, and lets the client fetch them again should they come
// back: it remembers a hold for ever.
func (c *consumer) remove(ps []*partition) {
	c.gate.enter()
	defer c.gate.leave()
	resume := map[string][]int32{}
	for _, p := range ps {
		k := tp{p.key.topic, p.key.num}
		c.mu.Lock()
		q := c.parts[k]
		if q != nil && q.assignmentToken == p.assignmentToken { // it, or what took its place in a seek
			delete(c.parts, k)
		}
		c.mu.Unlock()
		if q != nil && q != p && q.assignmentToken == p.assignmentToken {
			q.close(c.taken(q.key, "the partition went to another member while its position was moved"))
		}
		p.mu.Lock()
		if p.held {
			p.held = false
			resume[k.topic] = append(resume[k.topic], k.num)
		}
		p.mu.Unlock()
	}
	if len(resume) > 0 {
		c.cl.ResumeFetchPartitions(resume)
	}
	signal(c.needsData)
}

// drained waits until nothing of the partitions is out, at most so long.
func (c *consumer) drained(ps []*partition, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		out := 0
		for _, p := range ps {
			p.mu.Lock()
			out += p.out
			p.mu.Unlock()
		}
		if out == 0 {
			return
		}
		select {
		case <-c.moved:
		case <-timer.C:
			return
		case <-c.over.Done():
			return
		}
	}
}

// close ends the assignment for its deliveries: those that are out are lost. It
// returns how many.
func (p *partition) close(cause error) int {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return 0
	}
	p.leaving = true
	p.drop()
	p.closed = true
	p.out = 0
	open := p.t.Open()
	p.mu.Unlock()
	return p.c.lose(open, cause)
}

// lose tells deliveries and observer.
func (c *consumer) lose(ds []*longshore.Delivery, cause error) int {
	lost := ds[:0]
	for _, d := range ds {
		if d.Lose(cause) {
			lost = append(lost, d)
		}
	}
	c.tell.lost(lost, cause)
	return len(lost)
}

// forfeit reports acks that no commit has carried: those records come again.
func (c *consumer) forfeit(p *partition) {
	p.mu.Lock()
	acked := p.acked
	p.acked = nil
	p.mu.Unlock()
	if len(acked) == 0 {
		return
	}
	c.mu.Lock()
	c.failed += len(acked)
	c.mu.Unlock()
	err := &longshore.Error{Code: longshore.CodeSettle, Op: "commit " + p.key.String() + " for " + c.src.title(), Source: c.src.name(),
		Err: fmt.Errorf("the assignment ended before the commit: %w", longshore.ErrLost)}
	for _, d := range acked {
		c.tell.settleFailed(d, longshore.Settlement{Verb: longshore.VerbAck}, err)
	}
}

func (c *consumer) taken(key partitionOf, why string) error {
	return &longshore.Error{Code: longshore.CodeLeaseLost, Op: "handle a record of " + key.String() + " for " + c.src.title(), Source: c.src.name(),
		Err: fmt.Errorf("%s: %w", why, longshore.ErrLost), Hint: "the record is handled again by the new owner; handlers that take less than RebalanceDrain finish first"}
}
