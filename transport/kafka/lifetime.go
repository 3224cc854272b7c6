package kafka

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
)

// phase is how far a consumer is on its way. It never goes back.
type phase uint8

const (
	consuming phase = iota
	canceled        // Cancel: nothing new; what is in hand is finished
	closed          // Close: nothing may start any more
)

// lifetime is the course of a consumer from its opening to its end. Its parts share it: a
// part that finds out that the consumer cannot go on calls fail, and knows nothing of what
// follows.
type lifetime struct {
	stop   context.Context    //nolint:containedctx // ends when nothing may be polled any more
	halt   context.CancelFunc // ends stop
	over   context.Context    //nolint:containedctx // ends with the consumer: its goroutines return
	finish context.CancelFunc // ends over
	begun  chan struct{}      // closed when the opening is done: no partition is assigned before it
	failed chan struct{}      // closed by the first fail

	mu    sync.Mutex // guards what follows
	phase phase      // it never goes back
	end   error      // what Receive returns from now on; nil while there may be deliveries
	cause error      // of the first fail
	quiet bool       // the container had asked for the end before that: it need not be told
}

// newLifetime begins with the opening.
func newLifetime() *lifetime {
	l := &lifetime{begun: make(chan struct{}), failed: make(chan struct{})}
	l.stop, l.halt = context.WithCancel(context.Background())
	l.over, l.finish = context.WithCancel(context.Background())
	return l
}

// fail ends the consumer from inside, once: it is down until it is opened again. What is
// done may still be committed by Close, unless the cluster is away.
func (l *lifetime) fail(err error) {
	l.mu.Lock()
	if l.end != nil {
		l.mu.Unlock()
		return
	}
	l.end, l.cause, l.quiet = err, err, l.phase > consuming
	l.mu.Unlock()
	close(l.failed)
	l.halt()
}

// cancel ends polling. A consumer that is closed stays closed.
func (l *lifetime) cancel() {
	l.mu.Lock()
	l.phase = max(l.phase, canceled)
	l.mu.Unlock()
	l.halt()
}

// close returns whether this is the first close, and why the consumer had ended before.
func (l *lifetime) close() (first bool, before error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == closed {
		return false, l.end
	}
	before, l.phase, l.end = l.end, closed, longshore.ErrClosed
	l.halt()
	return true, before
}

// ended is what Receive returns instead of deliveries; nil while there may be some.
func (l *lifetime) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil && l.phase == canceled {
		return longshore.ErrCanceled
	}
	return l.end
}

// active reports whether records may still be handed out.
func (l *lifetime) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == consuming && l.end == nil
}

// working reports whether the consumer has something to look after: also what was handed
// out before a Cancel.
func (l *lifetime) working() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase < closed && l.end == nil
}

// leaving reports whether the container has asked for the end.
func (l *lifetime) leaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase > consuming
}

// failure is the error that ended the consumer from inside, nil if none did; news says whether
// the container has yet to hear of it.
func (l *lifetime) failure() (news bool, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.quiet, l.cause
}
