package amqptest

import (
	"slices"
	"sort"
	"time"
)

// verdict is what happens to a delivery.
type verdict int

const (
	ackIt          verdict = iota
	rejectIt               // dead-letter
	returnNacked           // requeue by basic.nack or recover
	returnRejected         // requeue by basic.reject
	returnClosed           // its channel or connection is gone
	returnTimeout          // held longer than the consumer timeout
)

// held is a delivery that waits for its settlement; entry nil = settled.
type held struct {
	tag      uint64
	entry    *entry
	queue    *queue
	consumer *consumer // nil for basic.get
	deadline time.Time // consumer timeout; zero = none
}

// unackedList holds deliveries in order of their tags.
type unackedList struct {
	items []held
	live  int
}

func (l *unackedList) push(h held) {
	l.items = append(l.items, h)
	l.live++
}

// take removes the delivery tag, or with multiple all up to it; tag 0 with
// multiple is all. ok is false when tag itself is not outstanding.
func (l *unackedList) take(tag uint64, multiple bool) (out []held, ok bool) {
	last := len(l.items) - 1
	if tag != 0 || !multiple {
		last = sort.Search(len(l.items), func(i int) bool { return l.items[i].tag >= tag })
		if last == len(l.items) || l.items[last].tag != tag || l.items[last].entry == nil {
			return nil, false
		}
	}
	first := last
	if multiple {
		first = 0
	}
	for i := first; i <= last; i++ {
		if l.items[i].entry != nil {
			out = append(out, l.items[i])
			l.items[i].entry = nil
		}
	}
	l.shrink(len(out))
	return out, true
}

// takeIf removes the deliveries that match.
func (l *unackedList) takeIf(match func(*held) bool) (out []held) {
	for i := range l.items {
		if h := &l.items[i]; h.entry != nil && match(h) {
			out = append(out, *h)
			h.entry = nil
		}
	}
	l.shrink(len(out))
	return out
}

// shrink forgets the settled ones at the head, and all when they are the most.
func (l *unackedList) shrink(settled int) {
	l.live -= settled
	n := 0
	for n < len(l.items) && l.items[n].entry == nil {
		n++
	}
	if n > 0 {
		clear(l.items[:n])
		l.items = l.items[n:]
	}
	if len(l.items) > 64 && l.live < len(l.items)/4 {
		l.items = slices.DeleteFunc(l.items, func(h held) bool { return h.entry == nil })
	}
}

// hold gives a delivery its tag and, unless noAck, keeps it until it is settled.
func (ch *channel) hold(e *entry, q *queue, c *consumer, noAck bool) uint64 {
	ch.nextTag++
	if noAck {
		return ch.nextTag
	}
	h := held{tag: ch.nextTag, entry: e, queue: q, consumer: c}
	if t := ch.timeoutOf(q); t > 0 {
		h.deadline = ch.s.now.Add(t)
		if ch.ackAlarm.index == 0 || h.deadline.Before(ch.ackAlarm.at) {
			ch.s.set(&ch.ackAlarm, h.deadline)
		}
	}
	ch.unacked.push(h)
	q.unacked++
	if c != nil {
		c.unacked++
		ch.globalUnacked++
	}
	return ch.nextTag
}

// settle is basic.ack, reject and nack.
func (ch *channel) settle(tag uint64, multiple bool, v verdict) error {
	late := ch.settleLate(tag, multiple)
	list, ok := ch.unacked.take(tag, multiple)
	if !ok && late {
		return nil
	}
	if !ok {
		return softErr(codePreconditionFailed, "unknown delivery tag %d", tag)
	}
	ch.finish(list, v)
	return nil
}

// requeueAll returns everything the channel holds.
func (ch *channel) requeueAll(v verdict) {
	list, _ := ch.unacked.take(0, true)
	ch.finish(list, v)
}

// finish carries a verdict out. A classic queue takes requeued messages back to
// their old places, youngest first here so that each finds its place at the
// front; a quorum queue lines them up in the order they are returned.
func (ch *channel) finish(list []held, v verdict) {
	if ch.globalPrefetch > 0 && len(list) > 0 {
		ch.wakeQueues()
	}
	for _, h := range list {
		h.queue.unacked--
		if h.consumer != nil {
			h.consumer.unacked--
			ch.globalUnacked--
		}
		ch.s.touch(h.queue)
		switch {
		case v == rejectIt && !h.queue.gone:
			h.queue.deadLetter(h.entry.msg, "rejected")
		case v >= returnNacked && h.queue.quorum:
			h.queue.takeBackQuorum(h.entry, v)
		}
	}
	if v < returnNacked {
		return
	}
	for _, h := range slices.Backward(list) {
		if !h.queue.quorum {
			h.queue.takeBack(h.entry)
		}
	}
}

// takeBack requeues in a classic queue.
func (q *queue) takeBack(e *entry) {
	if q.gone {
		return
	}
	e.redelivered = true
	q.list(e.level).insertInOrder(e)
	q.added(e)
}

// takeBackQuorum requeues in a quorum queue, or dead-letters what came back
// more often than its limit allows.
func (q *queue) takeBackQuorum(e *entry, v verdict) {
	if q.gone {
		return
	}
	e.redelivered = true
	e.acquired++
	if q.s.cfg.Flavor < V4_3 || v == returnRejected || v == returnClosed {
		e.returns++
	}
	if q.limited && int64(e.returns) > q.deliveryLimit {
		q.deadLetter(e.msg, "delivery_limit")
		return
	}
	if !q.limited && q.s.cfg.Flavor < V4_3 && v != returnClosed {
		q.list(e.level).pushBack(e) // without a limit, RabbitMQ up to 4.0 requeues at the end
	} else {
		q.returned.pushBack(e)
	}
	q.added(e)
}
