package demo

import (
	"context"
	"net"
	"sync"
)

// cutter dials and remembers, so that all connections can be cut as a failing
// network would: also those to a broker at an address, which is not ours to stop.
type cutter struct {
	mu    sync.Mutex
	conns map[*cutConn]struct{}
}

func newCutter() *cutter { return &cutter{conns: map[*cutConn]struct{}{}} }

// dial has the shape of net.Dialer.DialContext.
func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := &cutConn{Conn: raw, c: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return conn, nil
}

// cut closes every connection with a reset and returns how many.
func (c *cutter) cut() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if t, ok := conn.Conn.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // else what was written would still arrive
		}
		_ = conn.Conn.Close() // the owner hears of it by its next read
	}
	n = len(c.conns)
	clear(c.conns)
	return n
}

type cutConn struct {
	net.Conn
	c *cutter
}

// Close forgets the connection.
func (c *cutConn) Close() error {
	c.c.mu.Lock()
	delete(c.c.conns, c)
	c.c.mu.Unlock()
	return c.Conn.Close()
}
