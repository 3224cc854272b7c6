package amqptest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

type connState int

const (
	connOpening connState = iota
	connOpen
	connClosing // connection.close sent, only its answer counts
	connDead    // detached from the broker
)

// closingTimeout bounds the wait for connection.close-ok.
const closingTimeout = 5 * time.Second

// conn is one client connection. Fields are guarded by Server.mu unless they
// say otherwise.
type conn struct {
	s   *Server
	id  uint64
	raw net.Conn // what is closed to cut
	nc  net.Conn // raw, or TLS over it
	br  *bufio.Reader
	out outbox

	state      connState
	properties Table  // the client's
	clientName string // its connection_name
	user       *account
	vhost      *vhost
	frameMax   int // fixed after the handshake
	channelMax int
	beat       atomic.Int64 // negotiated heartbeat in ns
	channels   map[uint16]*channel
	exclusive  map[*queue]struct{}
	caps       capabilities

	methods    int         // received since connection.open-ok
	cutAt      int         // cut instead of handling this one; 0 = never
	published  bool        // during the alarm: what makes it block the connection
	blocked    bool        // the reader stands still
	stalled    atomic.Bool // neither reads nor writes: a half-open connection
	congested  bool        // too much unsent
	confirming []*channel
	pending    atomic.Bool // confirming is not empty
	secret     string      // of the last connection.update-secret
}

// capabilities the client announced.
type capabilities struct {
	cancelNotify, blocked, authFailureClose bool
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		s: s, id: s.nextID(), nc: nc, raw: nc,
		frameMax:  s.cfg.FrameMax,
		channels:  map[uint16]*channel{},
		exclusive: map[*queue]struct{}{},
		cutAt:     s.controls.cutAt,
	}
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		c.raw = t.NetConn() // closing TLS politely could block under the lock
	}
	c.out.wake = make(chan struct{}, 1)
	c.br = bufio.NewReaderSize(flusher{c}, 64<<10)
	return c
}

// flusher is what the reader reads from: before it would wait for the client
// the collected confirms go out, so that a burst of publishes gets one ack.
type flusher struct{ c *conn }

func (f flusher) Read(p []byte) (int, error) {
	c := f.c
	if c.pending.Load() {
		c.s.begin()
		c.flushConfirms()
		c.s.end()
	}
	if beat := time.Duration(c.beat.Load()); beat > 0 {
		_ = c.raw.SetReadDeadline(time.Now().Add(2 * beat))
	}
	return c.nc.Read(p)
}

// read is the connection's reader: handshake, then frames until the end.
func (c *conn) read() {
	defer c.s.wg.Done()
	err := c.handshake()
	var buf [4096]byte
	for err == nil {
		var f frame
		if f, err = readFrame(c.br, buf[:], c.frameMax); err != nil {
			if re := asReply(err); re != nil && c.exception(re) == nil {
				c.discard()
			}
			break
		}
		err = c.receive(f)
		if re := asReply(err); re != nil {
			err = c.exception(re)
		}
	}
	c.s.begin()
	c.detach()
	c.s.end()
}

// discard reads what follows a broken frame, where no frame can be told from
// another any more, up to connection.close-ok: closing the socket with bytes
// unread would reset it and take our connection.close away from the client.
func (c *conn) discard() {
	answer := appendMethod(nil, 0, connectionCloseOk, nil)
	var last []byte
	for !bytes.Equal(last, answer) {
		b, err := c.br.ReadByte()
		if err != nil {
			return
		}
		if last = append(last, b); len(last) > len(answer) {
			last = last[1:]
		}
	}
}

// send appends frames to the outbox.
func (c *conn) send(fn func(b []byte) []byte) {
	if c.state == connDead {
		return
	}
	if c.out.add(c.s.controls.delay, fn) > congestion {
		c.congested = true
	}
}

func (c *conn) reply(channel uint16, m method, fields func([]byte) []byte) {
	c.send(func(b []byte) []byte { return appendMethod(b, channel, m, fields) })
}

var errGone = errors.New("connection is gone")

// receive handles one frame. A replyError it returns ends the connection.
func (c *conn) receive(f frame) error {
	c.s.begin()
	defer c.s.end()
	if c.state == connDead {
		return errGone
	}
	var err error
	switch {
	case f.kind == frameHeartbeat:
	case f.kind == frameMethod:
		err = c.method(f)
	case c.state == connClosing:
	case f.channel == 0:
		err = hardErr(codeUnexpectedFrame, "unexpected frame on channel 0")
	default:
		err = c.content(f)
	}
	c.standStill()
	return err
}

func (c *conn) method(f frame) error {
	if len(f.payload) < 4 {
		return hardErr(codeSyntaxError, "method frame of %d bytes", len(f.payload))
	}
	m := method(binary.BigEndian.Uint32(f.payload))
	d := &decoder{b: f.payload[4:]}
	if c.state == connClosing {
		switch m {
		case connectionCloseOk:
			return errGone
		case connectionClose:
			c.reply(0, connectionCloseOk, nil)
			return errGone
		}
		return nil
	}
	c.s.log.add(c.s.now, c.id, f.channel, m, d.b)
	c.methods++
	if c.cutAt > 0 && c.methods >= c.cutAt && m != connectionClose {
		c.cut()
		return errGone
	}
	var err error
	if f.channel == 0 {
		err = c.connectionMethod(m, d)
	} else {
		err = c.channelMethod(f.channel, m, d)
	}
	if re := asReply(err); re != nil && re.method == 0 {
		re.method = m
	}
	return err
}

func (c *conn) connectionMethod(m method, d *decoder) error {
	switch m {
	case connectionClose:
		c.reply(0, connectionCloseOk, nil)
		return errGone
	case connectionUpdateSecret:
		c.secret = string(d.longstr())
		c.reply(0, connectionUpdateSecretOk, nil)
		return nil
	}
	return hardErr(codeCommandInvalid, "unexpected method in connection state running")
}

// exception sends connection.close and waits, still reading, for its answer.
func (c *conn) exception(e *replyError) error {
	c.s.begin()
	defer c.s.end()
	return c.closeWith(e)
}

func (c *conn) closeWith(e *replyError) error {
	if c.state == connDead || c.state == connClosing {
		return errGone
	}
	c.release()
	c.state = connClosing
	c.reply(0, connectionClose, closeFields(e))
	c.beat.Store(0)
	_ = c.raw.SetReadDeadline(time.Now().Add(closingTimeout))
	c.s.resumed.Broadcast()
	return nil
}

func closeFields(e *replyError) func([]byte) []byte {
	return func(b []byte) []byte {
		b = appendShortstr(binary.BigEndian.AppendUint16(b, e.code), e.text)
		return binary.BigEndian.AppendUint32(b, uint32(e.method))
	}
}

// release gives back everything the connection held in the broker.
func (c *conn) release() {
	for _, ch := range c.channels {
		ch.release()
	}
	clear(c.channels)
	for q := range c.exclusive {
		q.delete()
	}
	c.confirming = nil
	c.pending.Store(false)
}

// detach ends the connection: what is in the outbox is still written.
func (c *conn) detach() {
	if c.state != connDead {
		c.release()
		c.state = connDead
		delete(c.s.conns, c)
		c.s.resumed.Broadcast()
	}
	c.out.end()
}

// cut ends the connection without a word.
func (c *conn) cut() {
	c.detach()
	_ = c.raw.Close()
}

// standStill holds the reader while publishers are blocked and this one
// published, as RabbitMQ stops reading from its socket, or while stalled.
func (c *conn) standStill() {
	c.updateBlocked()
	if !c.blocked && !c.stalled.Load() {
		return
	}
	c.flushConfirms()
	for (c.blocked || c.stalled.Load()) && c.state == connOpen {
		c.s.work()
		c.s.resumed.Wait()
	}
	if !c.s.cfg.VirtualClock {
		c.s.now = time.Now()
	}
}
