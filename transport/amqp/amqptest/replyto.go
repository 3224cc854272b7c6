package amqptest

import (
	"encoding/binary"
	"strings"
)

// replyQueue is the pseudo-queue of direct reply-to.
const replyQueue = "amq.rabbitmq.reply-to"

// replyConsumer receives answers without a queue in between.
type replyConsumer struct {
	tag  string
	name string // what a requester's reply-to becomes
}

func (ch *channel) consumeReplies(tag string, noAck, noWait bool) error {
	switch {
	case ch.reply != nil:
		return softErr(codePreconditionFailed, "reply consumer already set")
	case !noAck:
		return softErr(codePreconditionFailed, "reply consumer cannot acknowledge")
	}
	if tag == "" {
		tag = generated("amq.ctag-")
	}
	ch.reply = &replyConsumer{tag: tag, name: generated(replyQueue + ".")}
	ch.conn.vhost.replies()[ch.reply.name] = ch
	if !noWait {
		ch.send(basicConsumeOk, func(b []byte) []byte { return appendShortstr(b, tag) })
	}
	return nil
}

func (ch *channel) dropReplyConsumer() {
	if ch.reply != nil {
		delete(ch.conn.vhost.replies(), ch.reply.name)
		ch.reply = nil
	}
}

// replies maps reply-to names to the channels that wait for them.
func (vh *vhost) replies() map[string]*channel {
	if vh.replyTo == nil {
		vh.replyTo = map[string]*channel{}
	}
	return vh.replyTo
}

// rewriteReplyTo makes the pseudo-queue's name in a request this channel's own.
func (ch *channel) rewriteReplyTo(p *properties, m *message) error {
	if ch.reply == nil {
		return softErr(codePreconditionFailed, "fast reply consumer does not exist")
	}
	p.setText(propReplyTo, ch.reply.name)
	m.props = p.encode()
	return nil
}

// toReplyConsumer delivers an answer; false when the key is not a reply-to name.
func (vh *vhost) toReplyConsumer(m *message) (taken bool) {
	if !strings.HasPrefix(m.key, replyQueue+".") {
		return false
	}
	ch := vh.replies()[m.key]
	if ch == nil {
		return false
	}
	ch.nextTag++
	ch.conn.send(func(b []byte) []byte {
		b = appendMethod(b, ch.n, basicDeliver, func(b []byte) []byte {
			b = binary.BigEndian.AppendUint64(appendShortstr(b, ch.reply.tag), ch.nextTag)
			return appendShortstr(appendShortstr(append(b, 0), m.exchange), m.key)
		})
		return appendContent(b, ch.n, m.props, m.body, ch.conn.frameMax)
	})
	return true
}

// declareReplyQueue answers whether a reply-to name is still waited for.
func (ch *channel) declareReplyQueue(name string, noWait bool) error {
	if name != replyQueue && ch.conn.vhost.replies()[name] == nil {
		return noQueue(ch.conn.vhost.name, name)
	}
	if !noWait {
		ch.queueDeclareOk(name, 0, 1)
	}
	return nil
}
