package amqptest

import (
	"sync"
	"time"
)

// congestion is how many unsent bytes stop further deliveries to a connection.
const congestion = 1 << 20

// outbox holds pending output to one connection. Its lock is a leaf:
// taken under the server's, never the other way round.
type outbox struct {
	mu     sync.Mutex
	buf    []byte
	marks  []mark // only while answers are delayed
	spare  []byte
	finish bool // write what is here, then close the socket
	wake   chan struct{}
}

// mark says that the bytes up to end may not be written before due.
type mark struct {
	end int
	due time.Time
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// add lets fn append frames.
func (o *outbox) add(delay time.Duration, fn func(b []byte) []byte) (size int) {
	o.mu.Lock()
	if !o.finish {
		o.buf = fn(o.buf)
		if delay > 0 {
			o.marks = append(o.marks, mark{len(o.buf), time.Now().Add(delay)})
		}
	}
	size = len(o.buf)
	o.mu.Unlock()
	o.signal()
	return size
}

// end closes the outbox: nothing is added any more.
func (o *outbox) end() {
	o.mu.Lock()
	o.finish = true
	o.mu.Unlock()
	o.signal()
}

// take hands out what may be written now. wait is the time until there is more
// (0 = unknown), last that nothing follows.
func (o *outbox) take() (chunk []byte, wait time.Duration, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.marks) == 0 {
		chunk, o.buf = o.buf, o.spare[:0]
		o.spare = nil
		return chunk, 0, o.finish
	}
	now, n := time.Now(), 0
	for n < len(o.marks) && !o.marks[n].due.After(now) {
		n++
	}
	if n < len(o.marks) {
		wait = max(o.marks[n].due.Sub(now), time.Microsecond)
	}
	if n == 0 {
		return nil, wait, false
	}
	cut := o.marks[n-1].end
	if n == len(o.marks) {
		cut = len(o.buf) // what was added after the delay was lifted
	}
	chunk = append([]byte(nil), o.buf[:cut]...)
	o.buf = append(o.buf[:0], o.buf[cut:]...)
	rest := o.marks[n:]
	for i := range rest {
		rest[i].end -= cut
	}
	o.marks = append(o.marks[:0], rest...)
	return chunk, wait, o.finish && len(o.buf) == 0
}

// recycle gives a written chunk's memory back.
func (o *outbox) recycle(chunk []byte) {
	if cap(chunk) > congestion {
		return
	}
	o.mu.Lock()
	o.spare = chunk
	o.mu.Unlock()
}
