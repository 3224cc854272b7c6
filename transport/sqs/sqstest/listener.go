package sqstest

import (
	"net"
	"sync"
	"time"
)

// httpBuffer is the size of net/http's buffer for an answer: a larger one is
// written in parts, of which the client wakes up for each.
const httpBuffer = 4 << 10

// listener makes connections that write an answer as a whole.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &wholeConn{Conn: c}, nil
}

// wholeConn holds a full buffer back until the rest of the answer comes. That it
// was the end is known when the server reads on, or closes.
type wholeConn struct {
	net.Conn

	mu   sync.Mutex
	held []byte
}

func (c *wholeConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == httpBuffer {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	if len(c.held) == 0 {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), c.flush()
}

// flush writes what was held back. The caller holds mu.
func (c *wholeConn) flush() error {
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.held)
	c.held = c.held[:0]
	return err
}

func (c *wholeConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	err := c.flush()
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Close does not wait for a client that does not read.
func (c *wholeConn) Close() error {
	if c.mu.TryLock() { // else a write is under way, which ends now
		if len(c.held) > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_ = c.flush() // whoever closes does not wait for an answer
		}
		c.mu.Unlock()
	}
	return c.Conn.Close()
}
