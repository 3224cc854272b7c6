package amqptest

import "encoding/binary"

// confirmRun is a run of sequence numbers with the same verdict that has not
// been sent yet. It goes out as one basic.ack or nack, with multiple when it
// holds more than one, as soon as the client sends nothing more.
type confirmRun struct {
	first, last uint64 // 0 = empty
	ack         bool
	lost        bool // a number before was lost for good: multiple would cover it
}

// confirmed notes the verdict on publish seq; 0 = the channel is not in confirm mode.
func (ch *channel) confirmed(seq uint64, ack bool) {
	if seq == 0 {
		return
	}
	run := &ch.confirms
	ctl := &ch.s.controls
	if ctl.loseConfirms > 0 {
		ctl.loseConfirms--
		ch.flushConfirms()
		run.lost = true
		return
	}
	if ctl.nackConfirms > 0 {
		ctl.nackConfirms--
		ack = false
	}
	if run.first != 0 && run.ack != ack {
		ch.flushConfirms()
	}
	if run.first == 0 {
		run.first, run.ack = seq, ack
		ch.conn.confirming = append(ch.conn.confirming, ch)
		ch.conn.pending.Store(true)
	}
	run.last = seq
}

// flushConfirms sends what one channel has collected.
func (ch *channel) flushConfirms() {
	run := &ch.confirms
	if run.first == 0 {
		return
	}
	first, last := run.first, run.last
	run.first = 0
	ch.conn.send(func(b []byte) []byte {
		if run.lost {
			for seq := first; seq <= last; seq++ {
				b = appendConfirm(b, ch.n, seq, run.ack, false)
			}
			return b
		}
		return appendConfirm(b, ch.n, last, run.ack, last > first)
	})
}

func appendConfirm(b []byte, channel uint16, seq uint64, ack, multiple bool) []byte {
	m := basicAck
	if !ack {
		m = basicNack
	}
	return appendMethod(b, channel, m, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint64(b, seq)
		if multiple {
			return append(b, 1)
		}
		return append(b, 0)
	})
}

func (c *conn) flushConfirms() {
	for _, ch := range c.confirming {
		if !ch.gone {
			ch.flushConfirms()
		}
	}
	c.confirming = c.confirming[:0]
	c.pending.Store(false)
}
