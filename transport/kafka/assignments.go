package kafka

import (
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// assignments are the partitions that this member has.
type assignments struct {
	gate gate      // polling and taking partitions away exclude each other
	life *lifetime // partitions are only assigned once the opening is done
	flow *flow     // told what a partition that leaves had fetched

	mu    sync.Mutex        // guards parts
	parts map[tp]*partition // replaced one by one: a partition that comes back is a new object
}

// newAssignments begins with no partition: the group, or the broadcast, brings them.
func newAssignments(life *lifetime, flow *flow) *assignments {
	return &assignments{life: life, flow: flow, parts: map[tp]*partition{}}
}

// get returns the assignment of a partition; nil where it is not this member's, as for records
// that were fetched before it left.
func (a *assignments) get(at tp) *partition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parts[at]
}

// count is how many partitions this member has; a member of a group may have none.
func (a *assignments) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.parts)
}

// all lists the partitions.
func (a *assignments) all() []*partition {
	return a.list(func(tp) bool { return true })
}

// of lists the partitions of a topic.
func (a *assignments) of(topic string) []*partition {
	return a.list(func(at tp) bool { return at.Topic == topic })
}

// list returns a copy, so that callers need no lock while they wait for partitions.
func (a *assignments) list(wanted func(tp) bool) []*partition {
	a.mu.Lock()
	defer a.mu.Unlock()
	ps := make([]*partition, 0, len(a.parts))
	for at, p := range a.parts {
		if wanted(at) {
			ps = append(ps, p)
		}
	}
	return ps
}

// owns reports whether a partition is this member's, in the same assignment. The broker
// does not check whose a partition is that is committed for.
func (a *assignments) owns(p *partition) bool {
	q := a.get(p.key.tp())
	return q != nil && q.token == p.token
}

// replace puts another state of the same assignment in the place of p. It reports whether
// p was still there.
func (a *assignments) replace(p, next *partition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.parts[p.key.tp()] != p {
		return false
	}
	a.parts[p.key.tp()] = next
	return true
}

// install puts new partitions in their places.
func (a *assignments) install(made []*partition) {
	a.gate.enter()
	defer a.gate.leave()
	for _, p := range made {
		a.mu.Lock()
		old := a.parts[p.key.tp()]
		a.parts[p.key.tp()] = p
		a.mu.Unlock()
		if !a.life.active() {
			p.stopHandingOut()
		}
		if old != nil { // an assignment that was repeated before it began
			old.release(old.with.src.taken(old.key, "it was assigned again"))
			old.reportUncommitted()
		}
		signal(p.with.settled.urgent) // a position that was not committed before
	}
	a.flow.wake()
}

// retire stops the handing out from partitions and returns those that this member has.
func (a *assignments) retire(m map[string][]int32) (ps []*partition) {
	if len(m) == 0 {
		return nil
	}
	a.gate.enter()
	defer a.gate.leave()
	for topic, nums := range m {
		for _, num := range nums {
			if p := a.get(tp{Topic: topic, Num: num}); p != nil {
				p.stopHandingOut()
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// release ends all assignments.
func (a *assignments) release(cause error) []*partition {
	ps := a.all()
	for _, p := range ps {
		p.release(cause)
	}
	return ps
}

// remove forgets partitions, and lets the client fetch them should they come back.
func (a *assignments) remove(ps []*partition) {
	a.gate.enter()
	defer a.gate.leave()
	for _, p := range ps {
		at := p.key.tp()
		a.mu.Lock()
		q := a.parts[at]
		ours := q != nil && q.token == p.token // p, or what took its place in a seek
		if ours {
			delete(a.parts, at)
		}
		a.mu.Unlock()
		if ours && q != p {
			q.release(q.with.src.taken(q.key, "the partition went to another member while its position was moved"))
		}
		p.endHold()
	}
	a.flow.wake()
}

// drained waits until nothing of the partitions is in hand, at most so long.
func (a *assignments) drained(ps []*partition, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		out := 0
		for _, p := range ps {
			out += p.inHand()
		}
		if out == 0 {
			return
		}
		select {
		case <-ps[0].with.settled.moved:
		case <-timer.C:
			return
		case <-a.life.over.Done():
			return
		}
	}
}

// endHold lets the client fetch the partition.
func (p *partition) endHold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.release()
}

// reportUncommitted reports acknowledgements that no commit has carried: those records are
// redelivered.
func (p *partition) reportUncommitted() {
	p.mu.Lock()
	acked := p.ledger.close()
	p.outputs.forget()
	p.mu.Unlock()
	if len(acked) == 0 {
		return
	}
	p.with.settled.lost.Add(int64(len(acked)))
	src := p.with.src
	p.with.reports.settleFailed(acked, &longshore.Error{Code: longshore.CodeSettle, Op: "commit " + p.key.String() + " for " + src.title(), Source: src.name(),
		Err: fmt.Errorf("the assignment ended before the commit: %w", longshore.ErrLost)})
}

// taken is why deliveries of a partition are lost.
func (s *Group) taken(key partitionOf, why string) error {
	return &longshore.Error{Code: longshore.CodeLeaseLost, Op: "handle a record of " + key.String() + " for " + s.title(), Source: s.name(),
		Err: fmt.Errorf("%s: %w", why, longshore.ErrLost), Hint: "the new owner handles the record again; handlers that take less than RebalanceDrain finish first"}
}
