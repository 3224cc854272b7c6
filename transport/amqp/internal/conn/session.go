package conn

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

// Channel is the client library's channel.
type Channel = *amqp091.Channel

// Session is one connection from its handshake to its end. It is never repaired: what
// broke is replaced, because a delivery tag means something else on every channel.
type Session struct {
	AMQP    *amqp091.Connection // the client library's connection
	Node    Node                // the broker at the other end
	Version Version             // the broker's, which decides what a quorum queue does
	Frame   int                 // the largest frame that both sides take, 0: no limit

	raw  net.Conn // closed where the client would wait for an answer
	refs int      // users of a shared session; guarded by Shared.mu

	done chan struct{} // closed when the connection is gone

	mu       sync.Mutex    // guards what follows
	blocked  string        // why the broker blocks publishers; "": it does not
	changed  chan struct{} // closed and replaced when blocked changes
	maxBytes int           // the largest body that the broker takes, as a refusal said; 0: not known

	wg sync.WaitGroup // every goroutine that talks on this connection
}

// Done is closed when the connection is gone.
func (s *Session) Done() <-chan struct{} { return s.done }

// Peer is what the broker says of itself in the handshake: product, version and cluster.
func (s *Session) Peer() string {
	said := func(name string) string {
		text, _ := s.AMQP.Properties[name].(string)
		return text
	}
	peer := strings.TrimSpace(said("product") + " " + said("version"))
	if cluster := said("cluster_name"); cluster != "" {
		peer += fmt.Sprintf(", cluster %q", cluster)
	}
	return peer
}

// Go runs f as one of the session's goroutines: closing the session waits for it. f ends
// with the connection at the latest.
func (s *Session) Go(f func()) { s.wg.Go(f) }

// Ended reports whether the connection is gone.
func (s *Session) Ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.AMQP.IsClosed()
	}
}

// watch notices the end of the connection and what the broker says about
// publishers, whoever else is busy.
func (s *Session) watch(event func(transport.Event)) {
	closes := s.AMQP.NotifyClose(make(chan *amqp091.Error, 1))
	blocks := s.AMQP.NotifyBlocked(make(chan amqp091.Blocking, 4))
	s.wg.Go(func() {
		for {
			select {
			case <-closes: //nolint:errcheck // each channel reports its own end
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

func (s *Session) block(b amqp091.Blocking, event func(transport.Event)) {
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
		event(transport.Event{Kind: transport.EventUnblocked, Text: fmt.Sprintf("rabbitmq at %s takes messages again", s.Node)})
		return
	}
	event(transport.Event{Kind: transport.EventBlocked, Err: s.BlockedError(),
		Text: fmt.Sprintf("rabbitmq at %s blocks publishers: %s; retries and dead letters wait", s.Node, reason)})
}

// BlockedError is nil while the broker takes messages.
func (s *Session) BlockedError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeBlocked, Op: fmt.Sprintf("publish to rabbitmq at %s", s.Node),
		Fields: at(s.Node), Err: fmt.Errorf("the broker blocks publishers: %s", s.blocked),
		Hint: "free memory or disk on the broker; publishing goes on by itself then"}
}

// Unblocked returns nil while the broker takes messages, else what to wait for.
func (s *Session) Unblocked() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return nil
	}
	return s.changed
}

// MaxBytes is the largest body the broker takes, 0 if it has not said.
func (s *Session) MaxBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxBytes
}

// LearnMaxBytes notes the largest body, which a refusal has shown.
func (s *Session) LearnMaxBytes(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxBytes = limit
}

// Within runs f, which talks to the broker and cannot be interrupted, and stops
// waiting for it when ctx ends; f ends with the connection at the latest. What f
// writes may be read only if within returned f's result.
func (s *Session) Within(ctx context.Context, f func() error) error {
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
func (s *Session) close(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(5 * time.Second)
	}
	hard := context.AfterFunc(ctx, func() { _ = s.raw.Close() })
	late := time.AfterFunc(time.Until(deadline), func() { _ = s.raw.Close() })
	_ = s.AMQP.CloseDeadline(deadline) // how the end went changes nothing: it is the end
	hard()
	late.Stop()
	_ = s.raw.Close()
	s.wg.Wait()
	return ctx.Err()
}

// Version is the broker's version: what a quorum queue does differs by it.
type Version [2]int

// CountsRejectsOnly reports whether quorum queues count basic.reject and the end of
// a channel, but not basic.nack, and cancel a consumer that acks too late: from
// 4.3 on.
func (v Version) CountsRejectsOnly() bool { return v[0] > 4 || (v[0] == 4 && v[1] >= 3) }

func parseVersion(props amqp091.Table) Version {
	var v Version
	text, _ := props["version"].(string)
	for i, part := range strings.SplitN(text, ".", 3) {
		if i < len(v) {
			v[i], _ = strconv.Atoi(part)
		}
	}
	return v
}

// Scratch runs f on a channel of its own: a refused declaration ends the channel
// it was made on.
func (s *Session) Scratch(ctx context.Context, f func(ch Channel) error) error {
	return s.Within(ctx, func() error {
		ch, err := s.AMQP.Channel()
		if err != nil {
			return err
		}
		err = f(ch)
		if cerr := ch.Close(); err == nil {
			err = cerr
		}
		return err
	})
}

// Confirming opens a channel in confirm mode. One that comes too late is closed.
// While the broker blocks publishers it answers nothing, so it is not asked.
func (s *Session) Confirming(ctx context.Context) (Channel, error) {
	if err := s.BlockedError(); err != nil {
		return nil, err
	}
	opened := make(chan Channel, 1)
	late := func() {
		select {
		case ch := <-opened:
			_ = ch.Close()
		default:
		}
	}
	err := s.Within(ctx, func() error {
		ch, err := s.AMQP.Channel()
		if err != nil {
			return err
		}
		if err := ch.Confirm(false); err != nil {
			return err
		}
		opened <- ch
		if ctx.Err() != nil {
			late()
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		s.wg.Go(late)
		return nil, err
	}
	return <-opened, nil
}
