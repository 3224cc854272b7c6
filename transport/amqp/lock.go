package amqp

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Locked returns the source with a lock: it consumes only while its connection has the
// exclusive queue of that name, and Open fails with [longshore.CodeExclusive] while another
// connection has it. The queue goes with the connection, as the consumer does, so a process
// that is killed leaves no lock behind. The user needs the permission to configure the queue.
func (s *Queue) Locked(name string) transport.Source {
	cfg := s.cfg
	cfg.Consumers = OneChannel // the end of its consumer is the end of the lock
	return &Queue{b: s.b, queues: s.queues, cfg: cfg, cast: s.cast, lock: name}
}

// lock takes a lock. The broker would let a second consumer on the same connection have it
// too, so what this process holds is noted here.
func (b *Broker) lock(ctx context.Context, sess *conn.Session, name string) error {
	op := fmt.Sprintf("take the lock %q at %s", name, sess.Node)
	b.mu.Lock()
	held := b.locks[name]
	b.locks[name] = true
	b.mu.Unlock()
	if held {
		return &longshore.Error{Code: longshore.CodeExclusive, Op: op, Source: name, Err: errors.New("another consumer of this process has it")}
	}
	err := sess.Scratch(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclare(name, false, false, true, false, nil)
		return err
	})
	if err == nil {
		return nil
	}
	b.forgetLock(name)
	if err = b.set.brokerError(op, name, err); errors.Is(err, longshore.CodeExclusive) {
		return &longshore.Error{Code: longshore.CodeExclusive, Op: op, Source: name, Err: errors.New("another instance has it"),
			Hint: "nothing: this instance stands by and takes over when the other one ends"}
	}
	return err
}

// unlock gives a lock back before its connection ends.
func (b *Broker) unlock(ctx context.Context, sess *conn.Session, name string) {
	if !sess.Ended() {
		_ = sess.Scratch(ctx, func(ch conn.Channel) error { // else it goes with the connection
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		})
	}
	b.forgetLock(name)
}

// forgetLock frees a name for this process; the broker's part is over by then.
func (b *Broker) forgetLock(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.locks, name)
}
