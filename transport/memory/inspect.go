package memory

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
)

// QueueInfo is what a queue holds and has seen.
type QueueInfo struct {
	Ready     int // could be delivered, or wait for their group
	Unsettled int // with consumers, buffered ones included
	Delayed   int // given back with a delay
	Consumers int // open and not canceled

	Published    uint64 // taken from publishers and dead-lettering queues
	Acked        uint64 // by consumers
	DeadLettered uint64 // moved to the dead-letter queue
	Dropped      uint64 // beyond the delivery limit, without a dead-letter queue
}

// Inspect returns the state of a queue; zero if it does not exist.
func (b *Broker) Inspect(name string) QueueInfo {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		return QueueInfo{}
	}
	info := QueueInfo{Ready: q.ready.len() + q.waiting, Delayed: q.delayed,
		Published: q.published, Acked: q.acked, DeadLettered: q.dead, Dropped: q.dropped}
	for _, c := range q.consumers.all {
		info.Unsettled += c.held.count
		if !c.canceled {
			info.Consumers++
		}
	}
	return info
}

// Connections returns how many consumers and publishers are open.
func (b *Broker) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.consumers) + b.opened
}

// Browse returns ready messages, oldest first, and leaves them in place. from is
// the position after which to go on.
func (s *queueSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	if err := s.b.slow(ctx, OpBrowse); err != nil {
		return nil, "", err
	}
	after, err := strconv.ParseUint(from, 10, 64)
	if err != nil && from != "" {
		return nil, "", &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("browse memory queue %q", s.name), Source: s.name,
			Err: fmt.Errorf("%q is not a position of an earlier answer", from)}
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := s.b.queues[s.name]
	if q == nil {
		return nil, "", s.b.notFound(s.name)
	}
	found := q.after(after)
	more := len(found) > n
	found = found[:min(n, len(found))]
	sub := &longshore.Subscription{Transport: "memory", Source: s.name, Identify: identify}
	ds := make([]*longshore.Delivery, len(found))
	for i, e := range found {
		d := longshore.NewDelivery(ctx, browsed{s.name}, 0)
		d.Message, d.Attempt = e.msg, e.attempt
		d.Origin = longshore.Origin{Subscription: sub, Topic: s.name, Partition: e.partition, Position: e.seq, Redelivered: e.redelivered}
		ds[i] = d
	}
	if !more {
		return ds, "", nil
	}
	return ds, strconv.FormatUint(found[len(found)-1].seq, 10), nil
}

// after returns the ready messages beyond a position, oldest first.
func (q *queue) after(seq uint64) []*entry {
	var found []*entry
	fresh := &q.ready.fresh
	for i := sort.Search(fresh.len(), func(i int) bool { return fresh.at(i).seq > seq }); i < fresh.len(); i++ {
		found = append(found, fresh.at(i))
	}
	other := q.ready.back.items
	for _, g := range q.groups {
		for i := range g.waiting.len() {
			other = append(other[:len(other):len(other)], g.waiting.at(i))
		}
	}
	for _, e := range other {
		if e.seq > seq {
			found = append(found, e)
		}
	}
	if len(other) > 0 {
		sort.Slice(found, func(i, j int) bool { return older(found[i], found[j]) })
	}
	return found
}

// browsed refuses to settle what was only looked at.
type browsed struct{ name string }

func (s browsed) refuse() error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: fmt.Sprintf("settle a message of memory queue %q", s.name), Source: s.name,
		Err: fmt.Errorf("it was browsed, not received")}
}

func (s browsed) Ack(context.Context, uint64) error                      { return s.refuse() }
func (s browsed) Nack(context.Context, uint64, time.Duration, int) error { return s.refuse() }
func (s browsed) Reject(context.Context, uint64, error) error            { return s.refuse() }
func (s browsed) Extend(context.Context, uint64, time.Duration) error    { return s.refuse() }
