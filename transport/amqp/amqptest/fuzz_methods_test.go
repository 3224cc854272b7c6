package amqptest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// spoken are the methods that a script of FuzzMethods can name, by their number.
func spoken() []method {
	return []method{channelOpen, channelFlow, channelClose, channelCloseOk, exchangeDeclare, exchangeDelete, exchangeBind,
		queueDeclare, queueBind, queueUnbind, queuePurge, queueDelete, basicQos, basicConsume, basicCancel, basicPublish, basicGet,
		basicAck, basicReject, basicNack, basicRecover, basicRecoverAsync, confirmSelect, txSelect, connectionUpdateSecret, connectionClose, connectionCloseOk}
}

// Steps of a script that are no method.
const (
	scriptHeader = 200 + iota
	scriptBody
	scriptAdvance
)

// script writes steps: what, on which channel, with what.
type script []byte

func (s script) step(kind, channel byte, payload []byte) script {
	return append(append(s, kind, channel, byte(len(payload))), payload...)
}

func (s script) say(m method, fields func([]byte) []byte) script {
	for i, one := range spoken() {
		if one == m {
			var b []byte
			if fields != nil {
				b = fields(nil)
			}
			return s.step(byte(i), 1, b)
		}
	}
	return s
}

// FuzzMethods: whatever a client says on an open connection, method by method, the
// server answers with whole frames, ends the channel or ends the connection.
func FuzzMethods(f *testing.F) {
	open := script(nil).say(channelOpen, func(b []byte) []byte { return append(b, 0) })
	declare := func(queue string, args Table) func([]byte) []byte {
		return func(b []byte) []byte { return appendTable(append(appendShortstr(append(b, 0, 0), queue), 0), args) }
	}
	consume := func(b []byte) []byte {
		return appendTable(append(appendShortstr(appendShortstr(append(b, 0, 0), "q"), "c"), 0), nil)
	}
	settle := []byte{0, 0, 0, 0, 0, 0, 0, 1, 1}
	plain := func(b []byte) func([]byte) []byte { return func([]byte) []byte { return b } }
	published := func(s script) script {
		return s.say(basicPublish, publishMethod).step(scriptHeader, 1, contentHeader(2, 0, 0)).step(scriptBody, 1, []byte("hi"))
	}
	dead := declare("q", Table{{"x-dead-letter-exchange", ""}, {"x-dead-letter-routing-key", "q"}, {"x-message-ttl", int32(10)}, {"x-max-length", int32(3)}})
	f.Add([]byte(published(open.say(queueDeclare, declare("q", nil)).say(confirmSelect, plain([]byte{0})).say(basicQos, plain([]byte{0, 0, 0, 0, 0, 1, 0})).say(basicConsume, consume)).
		say(basicAck, plain(settle))))
	f.Add([]byte(published(published(open.say(queueDeclare, dead))).step(scriptAdvance, 0, []byte{20}).say(basicGet, plain([]byte{0, 0, 1, 'q', 0})).say(basicReject, plain(settle))))
	f.Add([]byte(open.say(exchangeDeclare, func(b []byte) []byte {
		return appendTable(append(appendShortstr(appendShortstr(append(b, 0, 0), "e"), "topic"), 0), nil)
	}).say(queueDeclare, declare("q", Table{{"x-queue-type", "quorum"}, {"x-delivery-limit", int32(1)}})).
		say(queueBind, func(b []byte) []byte {
			return appendTable(append(appendShortstr(appendShortstr(appendShortstr(append(b, 0, 0), "q"), "e"), "a.*.#"), 0), nil)
		}).say(channelClose, plain([]byte{0, 200, 0, 0, 0, 0, 0}))))
	f.Fuzz(talk)
}

func talk(t *testing.T, text []byte) {
	s := New(t, Config{VirtualClock: true})
	defer s.Close()
	client, server := net.Pipe()
	defer client.Close()
	s.begin()
	c := newConn(s, server)
	c.vhost, c.user, c.state, c.channelMax = s.vhosts[s.cfg.VHosts[0]], s.accounts[s.cfg.Users[0].Name], connOpen, 10
	s.conns[c] = struct{}{}
	s.end()
	for n := 0; len(text) >= 3 && n < 100; n++ {
		kind, channel, size := text[0], text[1]%3, min(int(text[2]), len(text)-3)
		payload := text[3 : 3+size]
		text = text[3+size:]
		if !c.said(t, s, kind, uint16(channel), payload) {
			break
		}
	}
	chunk, _, _ := c.out.take()
	for r := bufio.NewReader(bytes.NewReader(chunk)); ; {
		if _, err := readFrame(r, nil, c.frameMax); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("what it answers are no frames: %v in %x", err, chunk)
		}
	}
}

// said makes one step; false is the end of the connection.
func (c *conn) said(t *testing.T, s *Server, kind byte, channel uint16, payload []byte) bool {
	fr := frame{kind: frameMethod, channel: channel}
	switch kind {
	case scriptHeader:
		fr.kind, fr.payload = frameHeader, payload
	case scriptBody:
		fr.kind, fr.payload = frameBody, bytes.Clone(payload)
	case scriptAdvance:
		if len(payload) > 0 {
			s.Advance(time.Duration(payload[0]) * time.Millisecond)
		}
		return true
	default:
		all := spoken()
		fr.payload = appendMethod(nil, channel, all[int(kind)%len(all)], func(b []byte) []byte { return append(b, payload...) })[7:]
		fr.payload = fr.payload[:len(fr.payload)-1]
	}
	err := c.receive(fr)
	re := asReply(err)
	if err != nil && re == nil && !errors.Is(err, errGone) {
		t.Fatalf("step %d %x: %v", kind, payload, err)
	}
	if re != nil {
		err = c.exception(re)
	}
	return err == nil
}
