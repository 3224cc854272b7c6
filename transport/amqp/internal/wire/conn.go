package wire

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
)

const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameHead      = 7 // type, channel, size
	frameOverhead  = 8 // the head and the end octet

	readBuffer = 64 << 10
)

// Conn passes AMQP frames between the client library and the broker and corrects the
// behaviours that this package is about. Reads are for one goroutine, the client's
// reader; writes may come from several.
type Conn struct {
	net.Conn

	// Only the client's reader uses these.
	in    *bufio.Reader
	out   []byte      // complete frames that the client reads before anything else
	left  int         // bytes of a frame that passes as it is
	raw   bool        // the peer does not send frames: pass everything, and then its error
	fence cancelFence // cancel-ok frames that wait

	hungUp atomic.Bool // the peer ended the connection

	write  sync.Mutex  // guards bounds and the order of writes
	bounds frameBounds // where the client's frames end

	mu      sync.Mutex // guards pending; never held during a write
	pending []byte     // our own frames, for the next place between two of the client's
}

// New puts a Conn on a connection on which nothing was sent yet.
func New(c net.Conn) *Conn {
	return &Conn{Conn: c, in: bufio.NewReaderSize(c, readBuffer), fence: cancelFence{held: map[uint16][]byte{}},
		bounds: frameBounds{left: len("AMQP0091")}}
}

// Read passes on the frames that are there. It waits only while it has none.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.read(p)
		if err != nil {
			c.noteEnd(err)
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (c *Conn) read(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case len(c.out) > 0:
			k := copy(p[n:], c.out)
			c.out = c.out[k:]
			n += k
			continue
		case n > 0 && c.in.Buffered() < frameOverhead+3:
			return n, nil // the client has something to read; waiting is for the next call
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
func (c *Conn) begin() error {
	head, err := c.in.Peek(frameHead)
	if err != nil {
		c.raw = true // passes on what there is, and then the error
		return nil
	}
	kind, channel, size := head[0], binary.BigEndian.Uint16(head[1:]), int(binary.BigEndian.Uint32(head[3:]))
	if kind != frameMethod && kind != frameHeader && kind != frameBody && kind != frameHeartbeat {
		c.raw = true // the broker's protocol header: it speaks another version
		return nil
	}
	c.left = size + frameOverhead
	if kind == frameHeader {
		return c.repair()
	}
	if kind != frameMethod || size < 4 {
		return nil
	}
	head, err = c.in.Peek(frameHead + 4)
	if err != nil {
		c.raw = true
		return nil
	}
	switch c.fence.step(channel, binary.BigEndian.Uint32(head[frameHead:])) {
	case fenceHold:
		frame, err := c.take()
		if err != nil {
			return err
		}
		c.fence.hold(channel, frame)
		return c.inject(flowFrame(channel))
	case fenceRelease:
		if _, err := c.take(); err != nil {
			return err
		}
		c.out = append(c.out, c.fence.release(channel)...)
	case fencePass:
	}
	return nil
}

// repair makes the headers of a message readable, in the buffer if they fit into it.
func (c *Conn) repair() error {
	if c.left <= c.in.Size() {
		frame, err := c.in.Peek(c.left)
		if err != nil {
			c.raw = true
			return nil
		}
		repairHeader(frame[frameHead : len(frame)-1])
		return nil
	}
	frame, err := c.take()
	if err != nil {
		return err
	}
	repairHeader(frame[frameHead : len(frame)-1])
	c.out = append(c.out, frame...)
	return nil
}

// take reads the whole frame that comes next.
func (c *Conn) take() ([]byte, error) {
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

// inject writes a frame of our own between two of the client's frames. A write that is in
// progress takes it along: the reader must not wait for a full socket.
func (c *Conn) inject(frame []byte) error {
	c.mu.Lock()
	c.pending = append(c.pending, frame...)
	c.mu.Unlock()
	return c.flush()
}

// flush writes pending frames unless another write is in progress, which does it then.
func (c *Conn) flush() error {
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

func (c *Conn) hasPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// writePending writes our frames if the stream is between two frames. The caller holds write.
func (c *Conn) writePending() error {
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

// Write passes the client's bytes on and follows where its frames end.
func (c *Conn) Write(p []byte) (int, error) {
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
