package conn

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Shared is a connection with many users: opened by the first, replaced when it broke,
// closed by the last.
type Shared struct {
	set     *Settings             // how to connect
	purpose string                // shown in RabbitMQ's management
	event   func(transport.Event) // told what the connection reports; may be nil

	turn  chan struct{} // holds a token; its holder may connect
	nodes []Node        // in the order in which they are tried
	next  int           // the node of the next attempt; guarded by turn

	mu  sync.Mutex // guards the session and its users
	cur *Session   // the present one; nil before the first user and after the last
}

// NewShared describes a shared connection to one of these nodes; it does no I/O.
func NewShared(set *Settings, purpose string, nodes []Node, event func(transport.Event)) *Shared {
	l := &Shared{set: set, purpose: purpose, nodes: nodes, event: event, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// Acquire returns a live session, to be given back by Release. One attempt to
// connect at a time, to the next node each time; it does not retry.
func (l *Shared) Acquire(ctx context.Context) (*Session, error) {
	if l.set.Problem != nil {
		return nil, l.set.Problem
	}
	if s := l.share(); s != nil {
		return s, nil
	}
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, &longshore.Error{Code: longshore.CodeUnreachable, Op: "connect to rabbitmq",
			Err: ctx.Err(), Hint: "another attempt to connect did not end in time"}
	}
	if s := l.share(); s != nil {
		return s, nil
	}
	n := l.nodes[l.next%len(l.nodes)]
	l.next++
	s, err := l.connect(ctx, n)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur, s.refs = s, 1
	return s, nil
}

// share returns the present session with one more user, nil if there is none.
func (l *Shared) share() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil || l.cur.Ended() {
		return nil
	}
	l.cur.refs++
	return l.cur
}

// Release gives a session back; the last user closes it within ctx.
func (l *Shared) Release(ctx context.Context, s *Session) error {
	l.mu.Lock()
	s.refs--
	last := s.refs == 0
	if last && l.cur == s {
		l.cur = nil
	}
	l.mu.Unlock()
	if !last {
		return nil
	}
	return s.close(ctx)
}
