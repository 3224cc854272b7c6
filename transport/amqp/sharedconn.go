package amqp

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// link is one of a broker's two shared connections: opened by the first user,
// replaced when it broke, closed by the last.
type link struct {
	set     *settings
	purpose string
	event   func(transport.Event) // of the connection; may be nil

	turn  chan struct{} // holds a token; who has it may connect
	nodes []node        // shuffled
	next  int           // guarded by turn

	mu  sync.Mutex
	cur *session
}

func newLink(set *settings, purpose string, nodes []node, event func(transport.Event)) *link {
	l := &link{set: set, purpose: purpose, nodes: nodes, event: event, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// acquire returns a live session, to be given back by release. One attempt to
// connect at a time, to the next node each time; it does not retry.
func (l *link) acquire(ctx context.Context) (*session, error) {
	if l.set.problem != nil {
		return nil, l.set.problem
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
func (l *link) share() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil || l.cur.ended() {
		return nil
	}
	l.cur.refs++
	return l.cur
}

// release gives a session back; the last user closes it within ctx.
func (l *link) release(ctx context.Context, s *session) error {
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
