package admin

import (
	"net"
	"sync"
	"time"
)

// What one client can take of the server. The numbers are far above what people, probes and
// scrapers need.
const (
	maxConns   = 256
	maxStreams = 32
	writeTime  = 10 * time.Second // for an answer, and for each part of a stream
	idleTime   = 30 * time.Second
	stopTime   = time.Second // for what runs when the server stops
)

// limitedListener closes connections at once that are beyond its places.
type limitedListener struct {
	net.Listener
	places chan struct{}
}

// Accept returns the next connection for which there is a place.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = c.Close() // before a request there is no answer to send
		}
	}
}

// placedConn gives its place back when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
