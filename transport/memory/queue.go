package memory

import (
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// queue is the broker's side of a queue. Everything here runs under Broker.mu.
type queue struct {
	b        *Broker // whose lock guards it
	name     string  // unique in the broker
	topic    *topic  // of a broadcast consumer's own queue; nil: the queue is shared
	declared bool    // a consumer has set the properties, which must agree from now on
	props    props   // what it is like

	seq     uint64            // of the last message; the order in which they came
	turn    int32             // next partition of a message without a key
	ready   backlog           // messages to hand out
	groups  map[string]*group // those with a message out or ready
	waiting int               // held back behind an earlier message of their group
	delayed int               // returned with a delay that has not ended

	consumers roster // served in turn

	due   heap[due]       // delays and leases by their end
	timer longshore.Timer // fires at the earliest of them; nil: none is due
	at    time.Time       // when timer fires

	// For Inspect, since the queue was made.
	published, acked, dead, dropped uint64
}

// entry is one message in a queue.
type entry struct {
	msg         longshore.Message // as published, so that each delivery has a copy
	seq         uint64            // its place in the queue, which it keeps when it is returned
	attempt     int               // what the next delivery carries
	count       int               // failures as the broker counts them, for the delivery limit
	partition   int32             // by its key
	redelivered bool              // it was handed out before
	group       *group            // nil: no order is kept for it
}

// precedes reports whether the order of a key, or of a partition, puts e before other.
func (e *entry) precedes(other *entry, partitioned bool) bool {
	if e.seq >= other.seq {
		return false
	}
	return len(e.msg.Key) > 0 && string(e.msg.Key) == string(other.msg.Key) || partitioned && e.partition == other.partition
}

// group holds back the messages of one key behind the one that is out.
type group struct {
	key     string        // of its messages
	waiting deque[*entry] // in the order in which they came
}

// backlog is what is ready, oldest first: new messages come last, returned ones
// take their old place.
type backlog struct {
	fresh deque[*entry] // never delivered, oldest first
	back  heap[*entry]  // returned, by their old places
}

func older(a, b *entry) bool { return a.seq < b.seq }

func (r *backlog) len() int { return r.fresh.len() + r.back.len() }

func (r *backlog) put(e *entry) {
	r.back.less = older
	r.back.push(e)
}

func (r *backlog) pop() *entry {
	switch {
	case r.back.len() == 0:
		return r.fresh.pop()
	case r.fresh.len() > 0 && older(r.fresh.at(0), r.back.items[0]):
		return r.fresh.pop()
	}
	return r.back.pop()
}

func (q *queue) title() string {
	if q.topic != nil {
		return fmt.Sprintf("memory topic %q", q.name)
	}
	return fmt.Sprintf("memory queue %q", q.name)
}

// declare gives the queue its properties, or checks them.
func (q *queue) declare(p props) error {
	switch {
	case p == props{}:
	case !q.declared:
		q.declared, q.props = true, p
		all := append(q.ready.back.items, q.ready.fresh.clear()...) // published before anyone said what the queue is
		sort.Slice(all, func(i, j int) bool { return older(all[i], all[j]) })
		q.ready.back.items = nil
		for _, e := range all {
			q.add(e)
		}
	case p != q.props:
		return &longshore.Error{Code: longshore.CodeMismatch, Op: "open " + q.title(), Source: q.name,
			Err:  fmt.Errorf("it exists with %+v, asked for is %+v", q.props, p),
			Hint: "use the same QueueConfig for all sources of the queue"}
	}
	return nil
}

// publish takes a message of a producer. The entry keeps a copy, but the bytes
// of body and key are shared.
func (q *queue) publish(m *longshore.Message) {
	q.seq++
	q.published++
	e := &entry{msg: *m, seq: q.seq, attempt: 1}
	if m.Headers != nil {
		e.msg.Headers = m.Headers.Clone()
	}
	q.add(e)
}

func (q *queue) add(e *entry) {
	if q.props.partitions > 0 {
		e.partition = q.partition(e.msg.Key)
	}
	if q.props.fifo && e.msg.Key != nil {
		g, busy := q.groups[string(e.msg.Key)]
		if !busy {
			g = &group{key: string(e.msg.Key)}
			if q.groups == nil {
				q.groups = map[string]*group{}
			}
			q.groups[g.key] = g
		}
		e.group = g
		if busy {
			g.waiting.push(e)
			q.waiting++
			return
		}
	}
	q.ready.fresh.push(e)
}

func (q *queue) partition(key []byte) int32 {
	if key == nil {
		q.turn = (q.turn + 1) % int32(q.props.partitions)
		return q.turn
	}
	h := fnv.New32a()
	_, _ = h.Write(key)
	return int32(h.Sum32() % uint32(q.props.partitions))
}

// gone is called when a message has left the queue: the next one of its group
// may go.
func (q *queue) gone(e *entry) {
	g := e.group
	if g == nil {
		return
	}
	if g.waiting.len() == 0 {
		delete(q.groups, g.key)
		return
	}
	q.waiting--
	q.ready.put(g.waiting.pop())
}

// giveBack puts a message that was out back into its place. counted says
// whether this was a failed attempt.
func (q *queue) giveBack(e *entry, counted bool, delay time.Duration) {
	e.redelivered = true
	if counted || q.props.countsReturns {
		e.count++
	}
	switch {
	case q.props.deliveryLimit > 0 && e.count >= q.props.deliveryLimit:
		q.deadLetter(e)
	case delay > 0:
		q.delayed++
		q.schedule(due{at: q.b.clock.Now().Add(delay), e: e})
	default:
		q.ready.put(e)
	}
}

// takeBack puts a message back about which no verdict was made.
func (q *queue) takeBack(e *entry) {
	if q.props.countsReturns {
		e.attempt++
	}
	q.giveBack(e, false, 0)
}

// nacked puts a message back with the attempt that the verdict wants its next delivery
// to carry; delivered is what the last one carried.
func (q *queue) nacked(e *entry, delivered int, v longshore.Settlement) {
	next := v.Attempt
	if next <= 0 || q.props.countsReturns {
		next = delivered + 1
	}
	e.attempt = next
	q.giveBack(e, next > delivered, v.Delay)
}

// deadLetter moves a message to the dead-letter queue, or drops it where there is none.
func (q *queue) deadLetter(e *entry) {
	q.gone(e)
	if q.props.deadLetter == "" {
		q.dropped++
		return
	}
	q.dead++
	dlq := q.b.queue(q.props.deadLetter)
	dlq.publish(&e.msg)
	dlq.dispatch()
}

// dispatch hands ready messages to consumers that have room, in turn.
func (q *queue) dispatch() {
	for q.ready.len() > 0 {
		c := q.taker()
		if c == nil {
			return
		}
		c.push(q.ready.pop())
	}
}

// taker is the consumer that gets the next message; nil if none has room.
func (q *queue) taker() *consumer {
	if !q.props.singleActive {
		return q.consumers.inTurn()
	}
	if a := q.consumers.active(); a != nil && a.room() {
		return a
	}
	return nil
}

// promote makes the consumer that is first in line now the active one.
func (q *queue) promote() {
	if !q.props.singleActive {
		return
	}
	if a := q.consumers.active(); a != nil && a.standby {
		a.standby = false
		a.notify.Event(transport.Event{Kind: transport.EventActive, Text: "now the active consumer"})
	}
}
