package amqptest

import (
	"fmt"
	"net"
	"time"
)

// controls are the faults that are switched on.
type controls struct {
	refusing        bool
	delay           time.Duration
	blockReason     string
	blocking        bool
	loseConfirms    int
	nackConfirms    int
	cutAt           int
	consumerTimeout time.Duration
}

// ConnFilter chooses connections; nil = all.
type ConnFilter func(ConnInfo) bool

// ChannelFilter chooses channels; nil = all.
type ChannelFilter func(ConnInfo, ChannelInfo) bool

func (s *Server) each(match ConnFilter, fn func(*conn)) (n int) {
	s.begin()
	defer s.end()
	for c := range s.conns {
		if match == nil || match(c.info()) {
			fn(c)
			n++
		}
	}
	return n
}

// CloseConnections sends connection.close with this code (RabbitMQ's operators
// use 320) and returns how many it closed.
func (s *Server) CloseConnections(code uint16, text string, match ConnFilter) int {
	return s.each(match, func(c *conn) {
		_ = c.closeWith(&replyError{code: code, text: replyText(code, "%s", text), hard: true})
	})
}

// Cut ends connections without a word (FIN), as a dying process does, and
// returns how many. Their deliveries are back in their queues when it returns.
func (s *Server) Cut(match ConnFilter) int {
	return s.each(match, (*conn).cut)
}

// CutReset is [Server.Cut] with a TCP reset, which discards what was under way.
func (s *Server) CutReset(match ConnFilter) int {
	return s.each(match, func(c *conn) {
		if t, ok := c.raw.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		c.cut()
	})
}

// Stall makes open connections half-open: the server neither reads nor writes
// until [Server.Unstall], and the socket stays open.
func (s *Server) Stall(match ConnFilter) int {
	return s.each(match, func(c *conn) { c.stalled.Store(true) })
}

// Unstall ends [Server.Stall].
func (s *Server) Unstall() {
	s.each(nil, func(c *conn) { c.stalled.Store(false) })
	s.resumed.Broadcast()
}

// CloseChannels closes channels with this code and returns how many.
func (s *Server) CloseChannels(code uint16, text string, match ChannelFilter) (n int) {
	s.each(nil, func(c *conn) {
		for _, ch := range c.channels {
			if ch.closing || match != nil && !match(c.info(), ch.info()) {
				continue
			}
			ch.closeWith(&replyError{code: code, text: replyText(code, "%s", text)})
			n++
		}
	})
	return n
}

// Refuse closes the port: connecting is refused until [Server.Accept]. Open
// connections live on.
func (s *Server) Refuse() {
	s.begin()
	defer s.end()
	if !s.controls.refusing && !s.closed {
		s.controls.refusing = true
		_ = s.listener.Close()
	}
}

// Accept opens the same port again after [Server.Refuse].
func (s *Server) Accept() error {
	s.begin()
	defer s.end()
	if !s.controls.refusing || s.closed {
		return nil
	}
	ln, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("amqptest: listen again on %s: %w", s.Addr, err)
	}
	s.controls.refusing, s.listener = false, ln
	s.wg.Add(1)
	go s.accept(ln)
	return nil
}

// Delay holds back everything the server sends by d; 0 ends it.
func (s *Server) Delay(d time.Duration) {
	s.begin()
	defer s.end()
	s.controls.delay = d
}

// LoseConfirms swallows the next n confirms: the messages are in their queues,
// and no answer to these publishes ever comes.
func (s *Server) LoseConfirms(n int) {
	s.begin()
	defer s.end()
	s.controls.loseConfirms = n
}

// NackConfirms answers the next n publishes in confirm mode with basic.nack.
func (s *Server) NackConfirms(n int) {
	s.begin()
	defer s.end()
	s.controls.nackConfirms = n
}

// CutAt cuts every connection made from now on when its n-th method after
// connection.open arrives, before it is handled; channel.open is the first.
// 0 ends it.
func (s *Server) CutAt(n int) {
	s.begin()
	defer s.end()
	s.controls.cutAt = n
}

// SetConsumerTimeout changes the ack timeout for channels opened from now on;
// negative = none.
func (s *Server) SetConsumerTimeout(d time.Duration) {
	s.begin()
	defer s.end()
	s.controls.consumerTimeout = d
}

// SetPassword changes what a user must present at its next login.
func (s *Server) SetPassword(user, password string) {
	s.begin()
	defer s.end()
	if a := s.accounts[user]; a != nil {
		changed := *a
		changed.Password = password
		s.accounts[user] = &changed
	}
}

// Block raises an alarm: connections that publish from now on are blocked, told so by
// connection.blocked, and not read from until [Server.Unblock], as RabbitMQ does
// when memory or disk runs low. Others live on; consumers are fed.
func (s *Server) Block(reason string) {
	s.begin()
	defer s.end()
	s.controls.blocking, s.controls.blockReason = true, reason
}

// Unblock ends the alarm; what waits in the sockets is read.
func (s *Server) Unblock() {
	s.begin()
	defer s.end()
	s.controls.blocking = false
	for c := range s.conns {
		c.updateBlocked()
	}
	s.resumed.Broadcast()
}

// updateBlocked blocks a connection that has published while the alarm is on,
// and releases it when it is over.
func (c *conn) updateBlocked() {
	blocked := c.s.controls.blocking && c.published && c.state == connOpen
	if blocked == c.blocked {
		return
	}
	c.blocked, c.published = blocked, blocked
	switch {
	case c.caps.blocked && blocked:
		reason := c.s.controls.blockReason
		c.reply(0, connectionBlocked, func(b []byte) []byte { return appendShortstr(b, reason) })
	case c.caps.blocked && c.state == connOpen:
		c.reply(0, connectionUnblocked, nil)
	}
}

// DeleteQueue deletes a queue as an operator would: its consumers get
// basic.cancel. It reports whether there was one.
func (s *Server) DeleteQueue(vhost, name string) bool {
	return s.withQueue(vhost, name, (*queue).delete)
}

// PurgeQueue drops the ready messages of a queue.
func (s *Server) PurgeQueue(vhost, name string) bool {
	return s.withQueue(vhost, name, func(q *queue) { q.purge() })
}

// CancelConsumers ends the subscriptions of a queue with basic.cancel.
func (s *Server) CancelConsumers(vhost, name string) bool {
	return s.withQueue(vhost, name, func(q *queue) {
		for _, c := range append([]*consumer(nil), q.consumers...) {
			c.cancelled()
		}
	})
}

// ForgetConsumers ends the subscriptions of a queue without a word, as a broker
// does that has lost track of them.
func (s *Server) ForgetConsumers(vhost, name string) bool {
	return s.withQueue(vhost, name, func(q *queue) {
		for _, c := range append([]*consumer(nil), q.consumers...) {
			c.remove()
		}
	})
}

// Suspend lets a queue do nothing until [Server.Resume], as a quorum queue without a
// leader: nothing is delivered, and whoever declares it passively hears 250 ms later that
// it has no messages and no consumers, which RabbitMQ says in its place. What is published
// and settled is taken.
func (s *Server) Suspend(vhost, name string) bool {
	return s.withQueue(vhost, name, func(q *queue) { q.suspended = true })
}

// Resume ends [Server.Suspend].
func (s *Server) Resume(vhost, name string) bool {
	return s.withQueue(vhost, name, func(q *queue) {
		q.suspended = false
		s.touch(q)
	})
}

func (s *Server) withQueue(vhost, name string, fn func(*queue)) bool {
	s.begin()
	defer s.end()
	vh := s.vhosts[vhost]
	if vh == nil || vh.queues[name] == nil {
		return false
	}
	fn(vh.queues[name])
	return true
}
