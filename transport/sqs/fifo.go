package sqs

import (
	"slices"

	"github.com/longshore-go/longshore"
)

// fifo is what waits for Receive: messages in the order of their arrival, and of each
// message group of a FIFO queue only the first. A receive brings up to ten messages of one
// group; those behind the head wait here until the head is settled and take no place from
// other groups. The consumer's lock guards it.
type fifo struct {
	ready  []*held           // what Receive may return, oldest first
	groups map[string]*group // those of which something is held; nil: groups are not kept in order here
	behind int               // messages that wait behind heads
	bytes  int               // of their bodies; maxBehind bounds them
}

// group is a message group of which something is held.
type group struct {
	head *held   // handed out, or about to be
	rest []*held // behind it, in their order
}

// maxBehind bounds the bodies that wait behind heads; what one more poll brings comes on
// top of it.
const maxBehind = 32 << 20

func (q *fifo) len() int { return len(q.ready) + q.behind }

// full reports that nothing more should be received.
func (q *fifo) full() bool { return q.bytes >= maxBehind }

// push takes a message in, at the end of its group.
func (q *fifo) push(h *held) {
	if q.groups != nil && h.group != "" {
		if g := q.groups[h.group]; g != nil {
			g.rest = append(g.rest, h)
			q.behind++
			q.bytes += len(h.d.Body)
			return
		}
		q.groups[h.group] = &group{head: h}
	}
	q.ready = append(q.ready, h)
}

// take removes up to n messages for Receive.
func (q *fifo) take(n int) []*longshore.Delivery {
	n = min(n, len(q.ready))
	out := make([]*longshore.Delivery, n)
	for i, h := range q.ready[:n] {
		h.handed = true
		out[i] = h.d
	}
	q.ready = append(q.ready[:0], q.ready[n:]...)
	return out
}

// remove takes out one message that Receive has not taken; false if it has.
func (q *fifo) remove(h *held) bool {
	i := slices.Index(q.ready, h)
	if i < 0 {
		return false
	}
	q.ready = slices.Delete(q.ready, i, i+1)
	return true
}

// settled ends the head of a group and makes the next message ready. It reports whether
// there is one; there is none either if h was not the head.
func (q *fifo) settled(h *held) bool {
	g := q.groups[h.group]
	if g == nil || g.head != h {
		return false
	}
	if len(g.rest) == 0 {
		delete(q.groups, h.group)
		return false
	}
	g.head, g.rest = g.rest[0], g.rest[1:]
	q.left(g.head)
	q.ready = append(q.ready, g.head)
	return true
}

// left takes messages off the sums that stood behind others.
func (q *fifo) left(hs ...*held) {
	q.behind -= len(hs)
	for _, h := range hs {
		q.bytes -= len(h.d.Body)
	}
}

// takeBehind removes a message from its group, and every message that follows it there
// and was not handed out; it returns the followers in their order.
func (q *fifo) takeBehind(h *held) []*held {
	followers := q.cut(h)
	q.ready = slices.DeleteFunc(q.ready, func(f *held) bool {
		after := f.token > h.token && f.group == h.group
		if after {
			followers = append(followers, f)
		}
		return after
	})
	return followers
}

// cut removes a message from its group and returns those that waited behind it.
func (q *fifo) cut(h *held) []*held {
	g := q.groups[h.group]
	switch {
	case g == nil:
		return nil
	case g.head == h:
		delete(q.groups, h.group)
		q.left(g.rest...)
		return g.rest
	}
	from := slices.IndexFunc(g.rest, func(f *held) bool { return f.token >= h.token })
	if from < 0 {
		return nil
	}
	behind := slices.Clone(g.rest[from:])
	q.left(behind...)
	g.rest = g.rest[:from]
	return slices.DeleteFunc(behind, func(f *held) bool { return f == h })
}

// release makes everything ready that waits behind heads, each group in its order.
func (q *fifo) release() { q.ready = append(q.ready, q.takeRest()...) }

// takeAll removes everything that Receive has not taken.
func (q *fifo) takeAll() []*held {
	all := q.ready
	q.ready = nil
	return append(all, q.takeRest()...)
}

// takeRest removes what waits behind heads. A head that a handler works on keeps its
// group, so that nothing that arrives later overtakes it.
func (q *fifo) takeRest() (all []*held) {
	for name, g := range q.groups {
		all = append(all, g.rest...)
		g.rest = nil
		if g.head.settled != nil || !g.head.handed {
			delete(q.groups, name)
		}
	}
	q.behind, q.bytes = 0, 0
	return all
}
