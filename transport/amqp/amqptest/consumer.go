package amqptest

import (
	"encoding/binary"
	"slices"
)

// consumer is one subscription.
type consumer struct {
	id        uint64 // by subscription
	tag       string
	ch        *channel
	queue     *queue
	noAck     bool
	exclusive bool
	prefetch  int
	unacked   int
	priority  int64
	removed   bool
	late      int // deliveries taken back from it that it has not settled since, see takeBackLate
}

func (ch *channel) basicConsume(d *decoder) error {
	d.u16()
	name, tag, flags, args := d.shortstr(), d.shortstr(), d.u8(), decodeTable(d)
	if d.err != nil {
		return nil
	}
	noAck, exclusive, noWait := flags&2 != 0, flags&4 != 0, flags&8 != 0
	if name == replyQueue {
		return ch.consumeReplies(tag, noAck, noWait)
	}
	if tag == "" {
		tag = generated("amq.ctag-")
	} else if _, used := ch.consumers[tag]; used {
		return hardErr(codeNotAllowed, "attempt to reuse consumer tag '%s'", tag)
	}
	name, err := ch.queueName(name)
	if err != nil {
		return err
	}
	if err := ch.mayRead("queue", name); err != nil {
		return err
	}
	q, err := ch.findQueue(name)
	if err != nil {
		return err
	}
	c := &consumer{id: ch.s.nextID(), tag: tag, ch: ch, queue: q, noAck: noAck, exclusive: exclusive, prefetch: ch.prefetch}
	if err := c.check(args); err != nil {
		return err
	}
	ch.consumers[tag] = c
	if !noWait {
		ch.send(basicConsumeOk, func(b []byte) []byte { return appendShortstr(b, tag) })
	}
	q.subscribe(c)
	return nil
}

func (c *consumer) check(args Table) error {
	q := c.queue
	if v, ok := args.lookup("x-priority"); ok {
		n, isInt := toInt(v)
		if !isInt {
			return softErr(codePreconditionFailed, "invalid arg 'x-priority' for %s: %s", q.where(), notInteger(v))
		}
		c.priority = n
	}
	if q.quorum && c.ch.globalPrefetch > 0 && q.s.cfg.Flavor < V4_3 {
		return notImplemented(q.where() + " does not support global qos")
	}
	if q.quorum {
		c.exclusive = false // a quorum queue does not know exclusive consumers, and says nothing
	}
	held := len(q.consumers) > 0 && (c.exclusive || q.consumers[0].exclusive)
	if held || c.exclusive && q.singleActive {
		return softErr(codeAccessRefused, "%s in exclusive use", q.where())
	}
	return nil
}

// subscribe adds c behind the consumers of its priority.
func (q *queue) subscribe(c *consumer) {
	q.enqueueConsumer(c)
	q.elect()
	q.s.unset(&q.idleAlarm)
	q.s.touch(q)
}

func (q *queue) enqueueConsumer(c *consumer) {
	at := len(q.consumers)
	for at > 0 && q.consumers[at-1].priority < c.priority {
		at--
	}
	q.consumers = slices.Insert(q.consumers, at, c)
}

// inTurn: a quorum queue of RabbitMQ 3.10 lets its single active consumer be
// followed by who came first, whatever the priority.
func (q *queue) inTurn() bool { return q.quorum && q.s.cfg.Flavor < V4_0 }

// elect names the active consumer of a single-active-consumer queue. A quorum
// queue of RabbitMQ 4 prefers a higher priority; else the active one stays.
func (q *queue) elect() {
	var best *consumer
	for _, c := range q.consumers {
		if c.late == 0 && (best == nil || q.inTurn() && c.id < best.id) {
			best = c
		}
	}
	if !q.singleActive || best == nil {
		q.active = nil
		return
	}
	prefer := q.quorum && q.s.cfg.Flavor >= V4_0 && q.active != nil && best.priority > q.active.priority
	if q.active == nil || q.active.removed || q.active.late > 0 || prefer {
		q.active = best
	}
}

// remove ends the subscription; what it holds stays with its channel.
func (c *consumer) remove() {
	if c.removed {
		return
	}
	c.removed = true
	if c.ch.consumers[c.tag] == c {
		delete(c.ch.consumers, c.tag)
	}
	q := c.queue
	if q.gone {
		return
	}
	q.consumers = remove(q.consumers, c)
	q.elect()
	q.s.touch(q)
	if len(q.consumers) == 0 {
		if q.autoDelete {
			q.delete()
			return
		}
		q.used()
	}
}

// cancelled ends the subscription from the server's side and notifies the client,
// if it asked for that.
func (c *consumer) cancelled() {
	c.remove()
	c.notifyCancel()
}

func (c *consumer) notifyCancel() {
	if c.ch.conn.caps.cancelNotify && !c.ch.gone {
		c.ch.send(basicCancel, func(b []byte) []byte { return append(appendShortstr(b, c.tag), 1) })
	}
}

func (ch *channel) basicCancel(d *decoder) error {
	tag, noWait := d.shortstr(), d.u8()&1 != 0
	if c := ch.consumers[tag]; c != nil {
		c.remove()
	} else if ch.reply != nil && ch.reply.tag == tag {
		ch.dropReplyConsumer()
	}
	if !noWait {
		ch.send(basicCancelOk, func(b []byte) []byte { return appendShortstr(b, tag) })
	}
	return nil
}

func (ch *channel) basicGet(d *decoder) error {
	d.u16()
	name, noAck := d.shortstr(), d.u8()&1 != 0
	q, err := ch.findQueue(name)
	if err != nil {
		return err
	}
	if err := ch.mayRead("queue", q.name); err != nil {
		return err
	}
	if q.quorum && q.singleActive {
		kind := "quorum"
		if q.s.cfg.Flavor >= V4_3 {
			kind = `<<"quorum">>`
		}
		return softErr(codeResourceLocked, "cannot obtain access to locked %s. basic.get operations are not supported by %s queues with single active consumer", q.where(), kind)
	}
	q.used()
	q.dropExpired(true)
	e := q.pop()
	if e == nil {
		ch.send(basicGetEmpty, func(b []byte) []byte { return append(b, 0) })
		return nil
	}
	q.s.touch(q)
	tag := ch.hold(e, q, nil, noAck)
	m := e.msg
	ch.conn.send(func(b []byte) []byte {
		b = appendMethod(b, ch.n, basicGetOk, func(b []byte) []byte {
			b = appendFlag(binary.BigEndian.AppendUint64(b, tag), e.redelivered)
			b = appendShortstr(appendShortstr(b, m.exchange), m.key)
			return binary.BigEndian.AppendUint32(b, uint32(q.count))
		})
		return appendContent(b, ch.n, q.propsFor(e, true), m.body, ch.conn.frameMax)
	})
	return nil
}

func appendFlag(b []byte, on bool) []byte {
	if on {
		return append(b, 1)
	}
	return append(b, 0)
}
