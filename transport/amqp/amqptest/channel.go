package amqptest

import (
	"encoding/binary"
	"time"
)

// channel is one AMQP channel. Guarded by Server.mu.
type channel struct {
	s       *Server
	conn    *conn
	n       uint16
	closing bool // channel.close sent: everything but its answer is ignored
	gone    bool // released

	incoming  incoming // the message being received
	lastQueue string   // what an empty queue name means

	confirm  bool
	nextSeq  uint64 // last publish sequence number
	confirms confirmRun

	nextTag        uint64
	unacked        unackedList
	consumers      map[string]*consumer
	prefetch       int // for consumers to come
	globalPrefetch int // for the channel as a whole
	globalUnacked  int
	late           map[uint64]*consumer // tags taken back with the channel left open (4.3)
	revived        []*consumer          // see takeBackLate
	ackTimeout     time.Duration
	ackAlarm       alarm
	reply          *replyConsumer
}

func newChannel(c *conn, n uint16) *channel {
	ch := &channel{s: c.s, conn: c, n: n, consumers: map[string]*consumer{}, ackTimeout: c.s.controls.consumerTimeout}
	ch.ackAlarm.fire = ch.checkAckTimeout
	return ch
}

// channelMethod handles a method on channel n.
func (c *conn) channelMethod(n uint16, m method, d *decoder) error {
	ch := c.channels[n]
	switch {
	case ch == nil && m == channelOpen:
		if len(c.channels) >= c.channelMax || int(n) > c.channelMax {
			return hardErr(codeNotAllowed, "number of channels opened (%d) has reached the negotiated channel_max (%d)", len(c.channels), c.channelMax)
		}
		c.channels[n] = newChannel(c, n)
		c.reply(n, channelOpenOk, func(b []byte) []byte { return append(b, 0, 0, 0, 0) })
		return nil
	case ch == nil && (m == channelCloseOk || m == channelClose):
		if m == channelClose {
			c.reply(n, channelCloseOk, nil)
		}
		return nil
	case ch == nil:
		return hardErr(codeChannelError, "expected 'channel.open'")
	case m == channelClose:
		ch.flushConfirms()
		ch.release()
		delete(c.channels, n)
		c.reply(n, channelCloseOk, nil)
		return nil
	case ch.closing:
		if m == channelCloseOk {
			delete(c.channels, n)
		}
		return nil
	case ch.incoming.expect != 0:
		return hardErr(codeUnexpectedFrame, "expected content %s for class 60, got method frame instead", ch.incoming.wants())
	}
	err := ch.method(m, d)
	if d.err != nil && err == nil {
		err = hardErr(codeSyntaxError, "malformed %s: %v", m, d.err)
	}
	return ch.exception(m, err)
}

// exception closes the channel for a soft error; a hard one goes up.
func (ch *channel) exception(m method, err error) error {
	re := asReply(err)
	if re == nil {
		return err
	}
	if re.method == 0 {
		re.method = m
	}
	if re.hard {
		return re
	}
	ch.closeWith(re)
	return nil
}

// closeWith closes the channel from the server's side.
func (ch *channel) closeWith(e *replyError) {
	if ch.closing || ch.gone {
		return
	}
	ch.flushConfirms()
	ch.release()
	ch.closing = true
	ch.conn.reply(ch.n, channelClose, closeFields(e))
}

// release gives back what the channel held; unacknowledged deliveries return to
// their queues.
func (ch *channel) release() {
	if ch.gone {
		return
	}
	ch.gone = true
	ch.incoming = incoming{}
	for _, c := range ch.consumers {
		c.remove()
	}
	clear(ch.consumers)
	ch.requeueAll(returnClosed)
	ch.forgetLate()
	ch.dropReplyConsumer()
	ch.s.unset(&ch.ackAlarm)
}

func (ch *channel) method(m method, d *decoder) error {
	switch m {
	case channelOpen:
		return hardErr(codeChannelError, "second 'channel.open' seen")
	case channelFlow:
		if d.u8()&1 == 0 {
			return notImplemented("active=false")
		}
		ch.send(channelFlowOk, func(b []byte) []byte { return append(b, 1) })
		return nil
	case channelFlowOk, channelCloseOk, basicCancelOk:
		return nil
	case exchangeDeclare:
		return ch.exchangeDeclare(d)
	case exchangeDelete:
		return ch.exchangeDelete(d)
	case exchangeBind, exchangeUnbind:
		return notImplemented("exchange to exchange bindings")
	case queueDeclare:
		return ch.queueDeclare(d)
	case queueBind:
		return ch.queueBind(d)
	case queueUnbind:
		return ch.queueUnbind(d)
	case queuePurge:
		return ch.queuePurge(d)
	case queueDelete:
		return ch.queueDelete(d)
	case basicPublish:
		return ch.basicPublish(d)
	case txSelect, txCommit, txRollback:
		return notImplemented("transactions")
	}
	return ch.consumeMethod(m, d)
}

// consumeMethod is the consuming half of the methods.
func (ch *channel) consumeMethod(m method, d *decoder) error {
	switch m {
	case basicQos:
		return ch.basicQos(d)
	case basicConsume:
		return ch.basicConsume(d)
	case basicCancel:
		return ch.basicCancel(d)
	case basicGet:
		return ch.basicGet(d)
	case basicAck:
		tag, multiple := d.u64(), d.u8()&1 != 0
		return ch.settle(tag, multiple, ackIt)
	case basicReject:
		tag, requeue := d.u64(), d.u8()&1 != 0
		if requeue {
			return ch.settle(tag, false, returnRejected)
		}
		return ch.settle(tag, false, rejectIt)
	case basicNack:
		tag, flags := d.u64(), d.u8()
		if flags&2 != 0 {
			return ch.settle(tag, flags&1 != 0, returnNacked)
		}
		return ch.settle(tag, flags&1 != 0, rejectIt)
	case basicRecover, basicRecoverAsync:
		if d.u8()&1 == 0 {
			return notImplemented("requeue=false")
		}
		ch.requeueAll(returnNacked)
		if m == basicRecover {
			ch.send(basicRecoverOk, nil)
		}
		return nil
	case confirmSelect:
		ch.confirm = true
		if d.u8()&1 == 0 {
			ch.send(confirmSelectOk, nil)
		}
		return nil
	}
	return hardErr(codeCommandInvalid, "unexpected method %s", m)
}

func (ch *channel) send(m method, fields func([]byte) []byte) { ch.conn.reply(ch.n, m, fields) }

func (ch *channel) wakeQueues() {
	for _, c := range ch.consumers {
		ch.s.touch(c.queue)
	}
}

// queueName resolves the empty name: the queue declared last on this channel.
func (ch *channel) queueName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if ch.lastQueue == "" {
		return "", softErr(codeNotFound, "no previously declared queue")
	}
	return ch.lastQueue, nil
}

func (ch *channel) basicQos(d *decoder) error {
	size, count, global := d.u32(), int(d.u16()), d.u8()&1 != 0
	if size != 0 {
		return notImplemented("prefetch_size!=0 (" + itoa(int(size)) + ")")
	}
	if global {
		ch.globalPrefetch = count
		ch.wakeQueues()
	} else {
		ch.prefetch = count
	}
	ch.send(basicQosOk, nil)
	return nil
}

func u32Field(n int) func([]byte) []byte {
	return func(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }
}
