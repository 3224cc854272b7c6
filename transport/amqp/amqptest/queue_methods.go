package amqptest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"
)

func (ch *channel) queueDeclare(d *decoder) error {
	d.u16()
	name, flags, args := d.shortstr(), d.u8(), decodeTable(d)
	if d.err != nil {
		return nil
	}
	noWait := flags&16 != 0
	var q *queue
	var err error
	switch {
	case strings.HasPrefix(name, replyQueue):
		return ch.declareReplyQueue(name, noWait)
	case flags&1 != 0: // passive: only the name counts
		q, err = ch.findQueue(name)
	default:
		q, err = ch.declare(name, flags&2 != 0, flags&4 != 0, flags&8 != 0, args)
	}
	if err != nil {
		return err
	}
	ch.lastQueue = q.name
	q.used()
	ready, consumers := q.ready(), len(q.consumers)
	if q.suspended {
		ready, consumers = 0, 0
		delay := &ch.s.controls.delay
		defer func(d time.Duration) { *delay = d }(*delay)
		*delay += silence
	}
	if !noWait {
		ch.queueDeclareOk(q.name, ready, consumers)
	}
	return nil
}

// silence is how long RabbitMQ waits for a queue before it answers in its place.
const silence = 250 * time.Millisecond

func (ch *channel) queueDeclareOk(name string, ready, consumers int) {
	ch.send(queueDeclareOk, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint32(appendShortstr(b, name), uint32(ready))
		return binary.BigEndian.AppendUint32(b, uint32(consumers))
	})
}

// findQueue looks a queue up for use by this channel: it must exist and not be
// another connection's own.
func (ch *channel) findQueue(name string) (*queue, error) {
	vh := ch.conn.vhost
	name, err := ch.queueName(name)
	if err != nil {
		return nil, err
	}
	q := vh.queues[name]
	if q == nil {
		return nil, noQueue(vh.name, name)
	}
	return q, ch.notLocked(q)
}

func (ch *channel) notLocked(q *queue) error {
	if q.owner == nil || q.owner == ch.conn {
		return nil
	}
	return q.lockedErr()
}

func (q *queue) lockedErr() error {
	return softErr(codeResourceLocked, "cannot obtain exclusive access to locked %s. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", q.where())
}

func (ch *channel) declare(name string, durable, exclusive, autoDelete bool, args Table) (*queue, error) {
	vh := ch.conn.vhost
	if name == "" {
		name = generated("amq.gen-")
	}
	if err := ch.mayConfigure("queue", name); err != nil {
		return nil, err
	}
	if q := vh.queues[name]; q != nil {
		if err := ch.notLocked(q); err != nil {
			return nil, err
		}
		return q, q.equivalent(durable, exclusive, autoDelete, args)
	}
	if strings.HasPrefix(name, "amq.") && !strings.HasPrefix(name, "amq.gen-") {
		return nil, softErr(codeAccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	q := newQueue(vh, name)
	q.durable, q.autoDelete, q.args = durable, autoDelete, args
	if exclusive {
		q.owner = ch.conn
	}
	var err error
	if q.queueArgs, err = readQueueArgs(q.where(), args, ch.s.cfg.Flavor); err != nil {
		return nil, err
	}
	if err := q.allowed(ch); err != nil {
		return nil, err
	}
	vh.queues[name] = q
	if exclusive {
		ch.conn.exclusive[q] = struct{}{}
	}
	return q, nil
}

// allowed checks combinations that a queue's type forbids, and the permissions
// a dead-letter exchange needs.
func (q *queue) allowed(ch *channel) error {
	if q.quorum {
		for _, c := range []struct {
			bad  bool
			name string
		}{{!q.durable, "non-durable"}, {q.owner != nil, "exclusive-owner"}, {q.autoDelete, "auto-delete"}} {
			if c.bad {
				return softErr(codePreconditionFailed, "invalid property '%s' for %s", c.name, q.where())
			}
		}
	}
	if !q.hasDLX {
		return nil
	}
	if err := ch.mayRead("queue", q.name); err != nil {
		return err
	}
	return ch.mayWrite("exchange", q.dlx)
}

func generated(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func (ch *channel) queueBind(d *decoder) error {
	d.u16()
	name, source, key, flags, args := d.shortstr(), d.shortstr(), d.shortstr(), d.u8(), decodeTable(d)
	if d.err != nil {
		return nil
	}
	q, x, err := ch.bindingEnds(name, source)
	if err != nil {
		return err
	}
	if name == "" && key == "" {
		key = q.name
	}
	if err := x.checkArgs(args); err != nil {
		return err
	}
	x.bind(q, key, args)
	if flags&1 == 0 {
		ch.send(queueBindOk, nil)
	}
	return nil
}

func (ch *channel) queueUnbind(d *decoder) error {
	d.u16()
	name, source, key, args := d.shortstr(), d.shortstr(), d.shortstr(), decodeTable(d)
	if d.err != nil {
		return nil
	}
	q, x, err := ch.bindingEnds(name, source)
	switch {
	case err == nil:
		x.unbind(q, key, args)
	case code404(err): // unbinding a missing object succeeds
	default:
		return err
	}
	ch.send(queueUnbindOk, nil)
	return nil
}

func (ch *channel) bindingEnds(queueName, source string) (*queue, *exchange, error) {
	vh := ch.conn.vhost
	queueName, err := ch.queueName(queueName)
	if err != nil {
		return nil, nil, err
	}
	if err := ch.mayWrite("queue", queueName); err != nil {
		return nil, nil, err
	}
	if source == "" {
		return nil, nil, softErr(codeAccessRefused, "operation not permitted on the default exchange")
	}
	if err := ch.mayRead("exchange", source); err != nil {
		return nil, nil, err
	}
	q, err := ch.findQueue(queueName)
	if err != nil {
		return nil, nil, err
	}
	x := vh.exchanges[source]
	if x == nil {
		return nil, nil, noExchange(vh.name, source)
	}
	return q, x, nil
}

func (ch *channel) queuePurge(d *decoder) error {
	d.u16()
	name, flags := d.shortstr(), d.u8()
	q, err := ch.findQueue(name)
	if err != nil {
		return err
	}
	if err := ch.mayRead("queue", q.name); err != nil {
		return err
	}
	n := q.purge()
	if flags&1 == 0 {
		ch.send(queuePurgeOk, u32Field(n))
	}
	return nil
}

func (ch *channel) queueDelete(d *decoder) error {
	d.u16()
	name, flags := d.shortstr(), d.u8()
	name, err := ch.queueName(name)
	if err != nil {
		return err
	}
	if err := ch.mayConfigure("queue", name); err != nil {
		return err
	}
	n := 0
	if q := ch.conn.vhost.queues[name]; q != nil { // deleting a missing object succeeds
		if err := ch.notLocked(q); err != nil {
			return err
		}
		if flags&1 != 0 && len(q.consumers) > 0 {
			return softErr(codePreconditionFailed, "%s in use", q.where())
		}
		if n = q.ready(); flags&2 != 0 && n > 0 {
			return softErr(codePreconditionFailed, "%s not empty", q.where())
		}
		q.delete()
	}
	if flags&4 == 0 {
		ch.send(queueDeleteOk, u32Field(n))
	}
	return nil
}
