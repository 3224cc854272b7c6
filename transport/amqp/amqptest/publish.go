package amqptest

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// message is one published message. It never changes after it was routed, so
// that several queues share it; a dead-lettered one is a new message.
type message struct {
	exchange, key string
	props         []byte // as on the wire: flags and property list
	body          []byte
	headers       Table    // decoded; nil when there are none
	routing       []string // key, CC and BCC
	persistent    bool
	priority      uint8
	ttl           time.Duration
	hasTTL        bool
	wasHeld       bool    // dead-lettered out of a consumer's hands
	deaths        []Table // 4.x keeps its own record and does not trust the header
}

// incoming is a message while its frames arrive on a channel.
type incoming struct {
	expect               uint8 // frameHeader, frameBody, or 0 when none is under way
	exchange, key        string
	mandatory, immediate bool
	props, body          []byte
	size                 uint64
}

func (in *incoming) wants() string {
	if in.expect == frameHeader {
		return "header"
	}
	return "body"
}

func itoa(n int) string { return strconv.Itoa(n) }

func (ch *channel) basicPublish(d *decoder) error {
	d.u16()
	in := incoming{expect: frameHeader, exchange: d.shortstr(), key: d.shortstr()}
	flags := d.u8()
	in.mandatory, in.immediate = flags&1 != 0, flags&2 != 0
	ch.incoming = in
	return nil
}

// content handles a header or body frame.
func (c *conn) content(f frame) error {
	ch := c.channels[f.channel]
	switch {
	case ch == nil:
		return hardErr(codeChannelError, "expected 'channel.open'")
	case ch.closing:
		return nil
	case ch.incoming.expect != f.kind:
		return hardErr(codeUnexpectedFrame, "expected method frame, got content frame of type %d instead", f.kind)
	}
	in := &ch.incoming
	var err error
	if f.kind == frameHeader {
		err = in.header(f.payload)
		c.published = c.s.controls.blocking // earlier ones do not make an alarm block it
	} else {
		err = in.part(f.payload, c.s.maxMessage())
	}
	if err != nil {
		return err
	}
	if uint64(len(in.body)) < in.size {
		return nil
	}
	done := ch.incoming
	ch.incoming = incoming{}
	return ch.exception(basicPublish, ch.publish(&done))
}

func (in *incoming) header(payload []byte) error {
	d := decoder{b: payload}
	class, _ := d.u16(), d.u16()
	in.size = d.u64()
	if d.err != nil || class != 60 {
		return hardErr(codeSyntaxError, "malformed content header")
	}
	in.props = append([]byte(nil), d.b...)
	in.expect = frameBody
	return nil
}

// part takes a body frame. Its memory is the message's own, see readFrame.
func (in *incoming) part(payload []byte, limit int) error {
	if uint64(len(in.body)+len(payload)) > in.size {
		return hardErr(codeFrameError, "body longer than its header said")
	}
	if in.body == nil {
		in.body = payload
		if n := min(in.size, uint64(limit)); n > uint64(len(payload)) {
			in.body = append(make([]byte, 0, n), payload...)
		}
		return nil
	}
	in.body = append(in.body, payload...)
	return nil
}

// publish checks a complete message, routes it and answers for it.
func (ch *channel) publish(in *incoming) error {
	vh := ch.conn.vhost
	if in.immediate {
		return notImplemented("immediate=true")
	}
	if limit := ch.s.maxMessage(); len(in.body) > limit {
		return softErr(codePreconditionFailed, "message size %d is larger than configured max size %d", len(in.body), limit)
	}
	x := vh.exchanges[in.exchange]
	if x == nil {
		return noExchange(vh.name, in.exchange)
	}
	if err := ch.mayWrite("exchange", x.name); err != nil {
		return err
	}
	if x.internal {
		return softErr(codeAccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", x.name, vh.name)
	}
	m, err := ch.message(in)
	if err != nil {
		return err
	}
	var seq uint64
	if ch.confirm {
		ch.nextSeq++
		seq = ch.nextSeq
	}
	if x.name == "" && vh.toReplyConsumer(m) {
		ch.confirmed(seq, true)
		return nil
	}
	queues := vh.route(x, m)
	if len(queues) == 0 && in.mandatory {
		ch.basicReturn(m)
	}
	accepted := true
	for _, q := range queues {
		if !q.publish(m) {
			accepted = false
		}
	}
	ch.confirmed(seq, accepted)
	return nil
}

// message checks the properties that RabbitMQ checks.
func (ch *channel) message(in *incoming) (*message, error) {
	p, err := splitProperties(in.props)
	if err != nil {
		return nil, hardErr(codeSyntaxError, "malformed properties")
	}
	if id := p.text(propUserID); p.field[propUserID] != nil && id != ch.conn.user.Name {
		return nil, softErr(codePreconditionFailed, "user_id property set to '%s' but authenticated user was '%s'", id, ch.conn.user.Name)
	}
	m := &message{exchange: in.exchange, key: in.key, props: in.props, body: in.body,
		persistent: p.octet(propDeliveryMode) == 2, priority: p.octet(propPriority)}
	ms, set, err := p.expiration()
	if err != nil || ms < 0 {
		return nil, softErr(codePreconditionFailed, "invalid expiration '%s': %s", p.text(propExpiration), badExpiration(p.text(propExpiration), err))
	}
	if ch.s.cfg.Flavor < V4_0 && p.field[propDeliveryMode] != nil && p.octet(propDeliveryMode) != 1 && p.octet(propDeliveryMode) != 2 {
		return nil, softErr(codePreconditionFailed, "invalid message: {delivery_mode_unknown,%d}", p.octet(propDeliveryMode))
	}
	m.ttl, m.hasTTL = time.Duration(ms)*time.Millisecond, set
	if m.headers, err = p.headers(); err != nil {
		return nil, hardErr(codeSyntaxError, "illegal table value")
	}
	if !finite(m.headers) { // RabbitMQ's channel process dies of it
		return nil, &replyError{code: codeInternalError, text: codeName(codeInternalError), hard: true}
	}
	if p.text(propReplyTo) == replyQueue {
		if err := ch.rewriteReplyTo(&p, m); err != nil {
			return nil, err
		}
	}
	return m, m.fixRouting(&p)
}

func badExpiration(text string, err error) string {
	if err == nil {
		return "{value_negative," + text + "}"
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == 0 {
		return "no_integer"
	}
	return fmt.Sprintf("{leftover_string,%q}", text[digits:])
}

// fixRouting reads the CC and BCC headers; BCC is not delivered.
func (m *message) fixRouting(p *properties) error {
	m.routing = append(m.routing, m.key)
	for _, name := range []string{"CC", "BCC"} {
		v, ok := m.headers.lookup(name)
		if !ok {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return softErr(codePreconditionFailed, "invalid message: {unacceptable_type_in_header,%q,%s}", name, typeName(v))
		}
		for _, e := range list {
			if key, ok := e.(string); ok {
				m.routing = append(m.routing, key)
			}
		}
		if name == "BCC" {
			m.headers = m.headers.without(name)
			p.setHeaders(m.headers)
			m.props = p.encode()
		}
	}
	return nil
}

func (ch *channel) basicReturn(m *message) {
	ch.conn.send(func(b []byte) []byte {
		b = appendMethod(b, ch.n, basicReturn, func(b []byte) []byte {
			b = appendShortstr(binary.BigEndian.AppendUint16(b, codeNoRoute), "NO_ROUTE")
			return appendShortstr(appendShortstr(b, m.exchange), m.key)
		})
		return appendContent(b, ch.n, m.props, m.body, ch.conn.frameMax)
	})
}

// maxMessage is the default max_message_size of the version.
func (s *Server) maxMessage() int {
	if s.cfg.Flavor >= V4_0 {
		return 16 << 20
	}
	return 128 << 20
}
