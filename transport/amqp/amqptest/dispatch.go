package amqptest

import (
	"encoding/binary"
	"slices"
)

// dispatch hands out ready messages to the consumers that may take it, drops
// what has expired and what is too much.
func (q *queue) dispatch() {
	if q.gone || q.suspended {
		return
	}
	for q.count > 0 {
		c := q.nextConsumer()
		q.dropExpired(c != nil)
		if c == nil || q.count == 0 {
			break
		}
		q.deliver(c, q.pop())
	}
	q.trim()
	q.armTTL()
}

// nextConsumer is the one whose turn it is, nil when none may take a message.
func (q *queue) nextConsumer() *consumer {
	if q.singleActive {
		if q.active != nil && q.active.ready() {
			return q.active
		}
		return nil
	}
	for _, c := range q.consumers {
		if c.ready() {
			return c
		}
	}
	return nil
}

func (c *consumer) ready() bool {
	ch := c.ch
	if ch.gone || ch.conn.congested || c.late > 0 {
		return false
	}
	if c.noAck {
		return true
	}
	return (c.prefetch == 0 || c.unacked < c.prefetch) &&
		(ch.globalPrefetch == 0 || ch.globalUnacked < ch.globalPrefetch)
}

func (q *queue) deliver(c *consumer, e *entry) {
	ch := c.ch
	tag := ch.hold(e, q, c, c.noAck)
	m := e.msg
	ch.conn.send(func(b []byte) []byte {
		b, start := beginFrame(b, frameMethod, ch.n)
		b = binary.BigEndian.AppendUint32(b, uint32(basicDeliver))
		b = binary.BigEndian.AppendUint64(appendShortstr(b, c.tag), tag)
		b = appendFlag(b, e.redelivered)
		b = endFrame(appendShortstr(appendShortstr(b, m.exchange), m.key), start)
		return appendContent(b, ch.n, q.propsFor(e, false), m.body, ch.conn.frameMax)
	})
	if !q.singleActive && len(q.consumers) > 1 {
		q.turn(c)
	}
}

// turn moves c behind the other consumers of its priority.
func (q *queue) turn(c *consumer) {
	at := slices.Index(q.consumers, c)
	for ; at+1 < len(q.consumers) && q.consumers[at+1].priority == c.priority; at++ {
		q.consumers[at] = q.consumers[at+1]
	}
	q.consumers[at] = c
}

// propsFor are the properties to deliver: a quorum queue says how often the
// message came back (3.10 tells basic.get even when it never did).
func (q *queue) propsFor(e *entry, get bool) []byte {
	zero := get && q.s.cfg.Flavor < V4_0
	if !q.quorum || e.acquired == 0 && !zero {
		return e.msg.props
	}
	p, _ := splitProperties(e.msg.props) // was checked when it was published
	h := e.msg.headers
	if e.returns > 0 || zero {
		h = h.with("x-delivery-count", int64(e.returns))
	}
	if q.s.cfg.Flavor >= V4_3 {
		h = h.with("x-acquired-count", int64(e.acquired))
	}
	p.setHeaders(h)
	return p.encode()
}
