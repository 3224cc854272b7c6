package amqp

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

type channel = *amqp091.Channel

// session is one connection from its handshake to its end. It is never repaired.
type session struct {
	conn    *amqp091.Connection
	raw     net.Conn
	node    node
	user    string // "" when the certificate says who we are
	version version
	frame   int // largest frame, 0 = no limit
	refs    int // guarded by link.mu

	done chan struct{} // closed when the connection is gone
	err  *amqp091.Error

	mu       sync.Mutex
	blocked  string        // why the broker blocks publishers; "" = it does not
	changed  chan struct{} // closed and replaced when blocked changes
	maxBytes int           // largest message as the broker once told us; 0 = unknown

	wg sync.WaitGroup // everything that talks on this connection
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.conn.IsClosed()
	}
}

// watch notices the end of the connection and what the broker says about
// publishers, whoever else is busy.
func (s *session) watch(event func(transport.Event)) {
	closes := s.conn.NotifyClose(make(chan *amqp091.Error, 1))
	blocks := s.conn.NotifyBlocked(make(chan amqp091.Blocking, 4))
	s.wg.Go(func() {
		for {
			select {
			case e := <-closes:
				s.err = e
				close(s.done)
				return
			case b, ok := <-blocks:
				if !ok {
					blocks = nil
					continue
				}
				s.block(b, event)
			}
		}
	})
}

func (s *session) block(b amqp091.Blocking, event func(transport.Event)) {
	reason := ""
	if b.Active {
		reason = b.Reason
		if reason == "" {
			reason = "no reason given"
		}
	}
	s.mu.Lock()
	s.blocked = reason
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if event == nil {
		return
	}
	if !b.Active {
		event(transport.Event{Kind: transport.EventUnblocked, Text: fmt.Sprintf("rabbitmq at %s takes messages again", s.node)})
		return
	}
	event(transport.Event{Kind: transport.EventBlocked, Err: s.blockedError(),
		Text: fmt.Sprintf("rabbitmq at %s blocks publishers: %s; retries and dead letters wait", s.node, reason)})
}

// blockedError is nil while the broker takes messages.
func (s *session) blockedError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeBlocked, Op: fmt.Sprintf("publish to rabbitmq at %s", s.node),
		Err:  fmt.Errorf("the broker blocks publishers: %s", s.blocked),
		Hint: "free memory or disk on the broker; publishing goes on by itself then"}
}

// unblocked returns nil while the broker takes messages, else what to wait for.
func (s *session) unblocked() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return nil
	}
	return s.changed
}

// limit is the largest body the broker takes, 0 if it has not told us.
func (s *session) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxBytes
}

func (s *session) learn(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxBytes = limit
}

// within runs f, which talks to the broker and cannot be interrupted, and stops
// waiting for it when ctx ends; f ends with the connection at the latest. What f
// writes may be read only if within returned f's result.
func (s *session) within(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	s.wg.Go(func() { result <- f() })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection, politely while ctx lasts.
func (s *session) close(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(5 * time.Second)
	}
	hard := context.AfterFunc(ctx, func() { _ = s.raw.Close() })
	late := time.AfterFunc(time.Until(deadline), func() { _ = s.raw.Close() })
	_ = s.conn.CloseDeadline(deadline) // how the end went changes nothing: it is the end
	hard()
	late.Stop()
	_ = s.raw.Close()
	s.wg.Wait()
	return ctx.Err()
}

// version is the broker's version: what a quorum queue does differs by it.
type version [2]int

// countsRejectsOnly tells whether quorum queues count basic.reject and the end of
// a channel, but not basic.nack, and cancel a consumer that acks too late: from
// 4.3 on.
func (v version) countsRejectsOnly() bool { return v[0] > 4 || (v[0] == 4 && v[1] >= 3) }

func parseVersion(props amqp091.Table) version {
	var v version
	text, _ := props["version"].(string)
	for i, part := range strings.SplitN(text, ".", 3) {
		if i < len(v) {
			v[i], _ = strconv.Atoi(part)
		}
	}
	return v
}
