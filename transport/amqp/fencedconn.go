package amqp

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
)

// lateConn holds back the broker's answer to basic.cancel until everything that
// the broker has sent for the cancelled consumer is through.
//
// RabbitMQ sends deliveries after cancel-ok: those that were on their way from the
// queue to the channel when the cancel was carried out. The client has forgotten
// the consumer by then and drops them, so that they stay unsettled until the
// channel closes. A classic queue puts them back in their place; a quorum queue
// puts them at its end, behind messages of the same key, and counts the return.
//
// So when cancel-ok passes, channel.flow(active) is sent on the same channel, a
// method without effect. Its answer comes after those deliveries, and cancel-ok
// is given to the client in its place. Consuming channels never publish, so a
// method may stand between any two frames of theirs.
type lateConn struct {
	net.Conn

	// Only the client's reader.
	in   *bufio.Reader
	out  []byte            // to be read before anything else
	left int               // of a frame that passes unseen
	held map[uint16][]byte // cancel-ok by channel
	raw  bool              // not frames: pass everything

	write   sync.Mutex // guards the boundary and the order of writes
	bounds  frameBounds
	mu      sync.Mutex
	pending []byte // to be written at the next boundary
}

const (
	frameMethod   = 1
	frameHeader   = 2
	frameOverhead = 8 // type, channel, size, end
	cancelOk      = 60<<16 | 31
	flowOk        = 20<<16 | 21
	channelClose  = 20<<16 | 40
	closeOk       = 20<<16 | 41
)

func newLateConn(c net.Conn) *lateConn {
	return &lateConn{Conn: c, in: bufio.NewReaderSize(c, 64<<10), held: map[uint16][]byte{}, bounds: frameBounds{left: len("AMQP0091")}}
}

// Read passes frames on, all that are there at once.
func (c *lateConn) Read(p []byte) (int, error) {
	for {
		n, err := c.read(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (c *lateConn) read(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case len(c.out) > 0:
			k := copy(p[n:], c.out)
			c.out = c.out[k:]
			n += k
			continue
		case n > 0 && c.in.Buffered() < frameOverhead+3:
			return n, nil // waiting is for the next call
		case c.raw:
			k, err := c.in.Read(p[n:])
			return n + k, err
		case c.left == 0:
			if err := c.begin(); err != nil {
				return n, err
			}
			continue
		}
		k, err := c.in.Read(p[n:min(len(p), n+c.left)])
		n += k
		c.left -= k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// begin looks at the frame that comes next.
func (c *lateConn) begin() error {
	head, err := c.in.Peek(frameOverhead - 1)
	if err != nil {
		c.raw = true // hands out what there is, and then the error
		return nil
	}
	kind, channel, size := head[0], binary.BigEndian.Uint16(head[1:]), int(binary.BigEndian.Uint32(head[3:]))
	if kind != frameMethod && kind != 2 && kind != 3 && kind != 8 {
		c.raw = true // the broker's protocol header: it wants another version
		return nil
	}
	c.left = size + frameOverhead
	if kind == frameHeader {
		return c.mend()
	}
	if kind != frameMethod || size < 4 {
		return nil
	}
	head, err = c.in.Peek(frameOverhead - 1 + 4)
	if err != nil {
		c.raw = true
		return nil
	}
	switch binary.BigEndian.Uint32(head[frameOverhead-1:]) {
	case cancelOk:
		frame, err := c.take()
		if err != nil {
			return err
		}
		c.held[channel] = append(c.held[channel], frame...)
		return c.inject(flowFrame(channel))
	case flowOk:
		if len(c.held[channel]) == 0 {
			return nil
		}
		if _, err := c.take(); err != nil {
			return err
		}
		c.out = append(c.out, c.held[channel]...)
		delete(c.held, channel)
	case channelClose, closeOk:
		delete(c.held, channel)
	}
	return nil
}

// mend makes the headers of a message readable, in the buffer if they fit in it.
func (c *lateConn) mend() error {
	if c.left <= c.in.Size() {
		frame, err := c.in.Peek(c.left)
		if err != nil {
			c.raw = true
			return nil
		}
		mendHeader(frame[frameOverhead-1 : len(frame)-1])
		return nil
	}
	frame, err := c.take()
	if err != nil {
		return err
	}
	mendHeader(frame[frameOverhead-1 : len(frame)-1])
	c.out = append(c.out, frame...)
	return nil
}

// take reads the whole frame that comes next.
func (c *lateConn) take() ([]byte, error) {
	frame := make([]byte, c.left)
	for done := 0; done < len(frame); {
		k, err := c.in.Read(frame[done:])
		if err != nil {
			return nil, err
		}
		done += k
	}
	c.left = 0
	return frame, nil
}

// flowFrame is channel.flow(active=true).
func flowFrame(channel uint16) []byte {
	f := []byte{frameMethod, 0, 0, 0, 0, 0, 5, 0, 20, 0, 20, 1, 0xCE}
	binary.BigEndian.PutUint16(f[1:], channel)
	return f
}

// inject writes a frame of our own between two of the client's. A writer that is
// at work takes it along: the reader must not wait for a socket that is full.
func (c *lateConn) inject(frame []byte) error {
	c.mu.Lock()
	c.pending = append(c.pending, frame...)
	c.mu.Unlock()
	return c.flush()
}

func (c *lateConn) flush() error {
	for c.hasPending() && c.write.TryLock() {
		err := c.writePending()
		stay := !c.bounds.at()
		c.write.Unlock()
		if err != nil || stay {
			return err
		}
	}
	return nil
}

func (c *lateConn) hasPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// writePending needs the write lock.
func (c *lateConn) writePending() error {
	if !c.bounds.at() {
		return nil
	}
	c.mu.Lock()
	frames := c.pending
	c.pending = nil
	c.mu.Unlock()
	if len(frames) == 0 {
		return nil
	}
	_, err := c.Conn.Write(frames)
	return err
}

// Write passes the client's bytes on and knows where its frames end.
func (c *lateConn) Write(p []byte) (int, error) {
	c.write.Lock()
	n, err := c.Conn.Write(p)
	c.bounds.pass(p[:n])
	if err == nil {
		err = c.writePending()
	}
	c.write.Unlock()
	if err == nil {
		err = c.flush() // what came while the lock was held
	}
	return n, err
}

// frameBounds follows a stream of frames.
type frameBounds struct {
	left int // of the current frame
	head []byte
}

// at says whether the stream is between two frames.
func (b *frameBounds) at() bool { return b.left == 0 && len(b.head) == 0 }

func (b *frameBounds) pass(p []byte) {
	for len(p) > 0 {
		if b.left > 0 {
			k := min(b.left, len(p))
			b.left -= k
			p = p[k:]
			continue
		}
		k := min(frameOverhead-1-len(b.head), len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
		if len(b.head) == frameOverhead-1 {
			b.left = int(binary.BigEndian.Uint32(b.head[3:])) + 1
			b.head = b.head[:0]
		}
	}
}
