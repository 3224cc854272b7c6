package amqptest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"time"
)

const handshakeTimeout = 10 * time.Second

const protocolHeader = "AMQP\x00\x00\x09\x01"

var errHandshake = errors.New("handshake failed")

// handshake takes the connection from the protocol header to open-ok.
func (c *conn) handshake() error {
	_ = c.raw.SetDeadline(time.Now().Add(handshakeTimeout))
	if t, ok := c.nc.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			return err
		}
	}
	var head [8]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		return err
	}
	if string(head[:]) != protocolHeader {
		c.locked(func() { c.send(func(b []byte) []byte { return append(b, protocolHeader...) }) })
		return errHandshake
	}
	steps := []func() error{c.start, c.tune, c.open}
	for _, step := range steps {
		if err := step(); err != nil {
			if re := asReply(err); re != nil {
				return c.exception(re)
			}
			return err
		}
	}
	return c.raw.SetDeadline(time.Time{})
}

func (c *conn) locked(fn func()) {
	c.s.begin()
	defer c.s.end()
	fn()
}

// await reads the one method that may come next.
func (c *conn) await(want method) (*decoder, error) {
	var f frame
	for {
		var err error
		if f, err = readFrame(c.br, nil, c.frameMax); err != nil {
			return nil, err
		}
		if f.kind != frameHeartbeat {
			break
		}
	}
	if f.kind != frameMethod || f.channel != 0 || len(f.payload) < 4 {
		return nil, hardErr(codeUnexpectedFrame, "expected %s", want)
	}
	m, d := method(binary.BigEndian.Uint32(f.payload)), &decoder{b: f.payload[4:]}
	if m == connectionClose {
		c.locked(func() { c.reply(0, connectionCloseOk, nil) })
		return nil, errGone
	}
	c.locked(func() { c.s.log.add(c.s.now, c.id, 0, m, d.b) })
	if m != want {
		return nil, hardErr(codeCommandInvalid, "unexpected method in connection state starting")
	}
	return d, nil
}

func (c *conn) start() error {
	c.locked(func() {
		c.reply(0, connectionStart, func(b []byte) []byte {
			b = appendTable(append(b, 0, 9), c.s.properties())
			return appendLongstr(appendLongstr(b, c.s.mechanisms()), "en_US")
		})
	})
	d, err := c.await(connectionStartOk)
	if err != nil {
		return err
	}
	props, mechanism := decodeTable(d), d.shortstr()
	response, _ := d.longstr(), d.shortstr()
	if d.err != nil {
		return hardErr(codeSyntaxError, "malformed connection.start-ok")
	}
	caps, _ := props.Get("capabilities").(Table)
	user, ok := c.s.login(c.nc, mechanism, response)
	c.locked(func() {
		c.properties, c.user = props, user
		c.clientName, _ = props.Get("connection_name").(string)
		c.caps.cancelNotify, _ = caps.Get("consumer_cancel_notify").(bool)
		c.caps.blocked, _ = caps.Get("connection.blocked").(bool)
		c.caps.authFailureClose, _ = caps.Get("authentication_failure_close").(bool)
	})
	switch {
	case ok:
		return nil
	case !strings.Contains(" "+c.s.mechanisms()+" ", " "+mechanism+" "):
		return hardErr(codeCommandInvalid, "unknown SASL mechanism '%s'", mechanism) // as RabbitMQ 3.10 does
	case c.caps.authFailureClose:
		return hardErr(codeAccessRefused, "Login was refused using authentication mechanism %s. For details see the broker logfile.", mechanism)
	}
	return errHandshake
}

func (c *conn) tune() error {
	beat := max(c.s.cfg.Heartbeat, 0) / time.Second
	c.locked(func() {
		c.reply(0, connectionTune, func(b []byte) []byte {
			b = binary.BigEndian.AppendUint16(b, uint16(c.s.cfg.ChannelMax))
			b = binary.BigEndian.AppendUint32(b, uint32(c.s.cfg.FrameMax))
			return binary.BigEndian.AppendUint16(b, uint16(beat))
		})
	})
	d, err := c.await(connectionTuneOk)
	if err != nil {
		return err
	}
	channels, size, seconds := int(d.u16()), int(d.u32()), d.u16()
	switch {
	case size != 0 && size < frameMinSize:
		return hardErr(codeNotAllowed, "negotiated frame_max = %d is lower than the minimum allowed value (%d)", size, frameMinSize)
	case size > c.s.cfg.FrameMax:
		return hardErr(codeNotAllowed, "negotiated frame_max = %d is higher than the maximum allowed value (%d)", size, c.s.cfg.FrameMax)
	case channels > c.s.cfg.ChannelMax:
		return hardErr(codeNotAllowed, "negotiated channel_max = %d is higher than the maximum allowed value (%d)", channels, c.s.cfg.ChannelMax)
	}
	c.locked(func() {
		c.channelMax = channels
		if channels == 0 {
			c.channelMax = c.s.cfg.ChannelMax
		}
		if size != 0 {
			c.frameMax = size
		}
	})
	c.beat.Store(int64(time.Duration(seconds) * time.Second))
	return nil
}

func (c *conn) open() error {
	d, err := c.await(connectionOpen)
	if err != nil {
		return err
	}
	name := d.shortstr()
	c.s.begin()
	defer c.s.end()
	vh := c.s.vhosts[name]
	switch {
	case vh == nil:
		return hardErr(codeNotAllowed, "vhost %s not found", name)
	case !c.user.mayOpen(name):
		return hardErr(codeNotAllowed, "access to vhost '%s' refused for user '%s'", name, c.user.Name)
	}
	if c.state == connDead {
		return errGone
	}
	c.vhost, c.state = vh, connOpen
	c.reply(0, connectionOpenOk, func(b []byte) []byte { return append(b, 0) })
	return nil
}

// properties is what the server says about itself. It calls itself RabbitMQ,
// because clients look at the product before they use what only RabbitMQ has.
func (s *Server) properties() Table {
	return Table{
		{"capabilities", Table{
			{"publisher_confirms", true},
			{"exchange_exchange_bindings", false},
			{"basic.nack", true},
			{"consumer_cancel_notify", true},
			{"connection.blocked", true},
			{"consumer_priorities", true},
			{"authentication_failure_close", true},
			{"per_consumer_qos", true},
			{"direct_reply_to", true},
		}},
		{"cluster_name", "amqptest"},
		{"copyright", "in-process test double, not a broker"},
		{"information", "github.com/longshore-go/longshore/transport/amqp/amqptest"},
		{"platform", "Go"},
		{"product", "RabbitMQ"},
		{"version", s.cfg.Flavor.String()},
	}
}
