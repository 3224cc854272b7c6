package faultproxy

import (
	"bufio"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize = 32 << 10
	// queued chunks per direction; a full queue is the back-pressure that a full
	// socket would be.
	queueLength = 64
)

// link is one client connection with its connection to the target.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	arm            MethodCut // copied at accept; zero = not armed
	short          *ByteCut  // the same; nil = not armed

	cut  atomic.Bool   // nothing passes any more, both sides have seen the end
	done chan struct{} // closed when the sockets are
	once sync.Once
}

// chunk is data on its way, not to be written before due.
type chunk struct {
	data []byte
	then func() // runs after data and all before it are written; may be nil
	due  time.Time
}

func newLink(p *Proxy, client, server *net.TCPConn) *link {
	return &link{proxy: p, client: client, server: server, done: make(chan struct{})}
}

// run forwards both directions and returns when both have ended.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { l.pump(l.server, l.client, l.shorten(false, l.clientReader())) })
	both.Go(func() { l.pump(l.client, l.server, l.shorten(true, rawReader(l.server))) })
	both.Wait()
	l.close()
}

// clientReader reads whole AMQP frames when a cut is armed, else whatever comes.
func (l *link) clientReader() func() (chunk, error) {
	if l.arm.N == 0 {
		return rawReader(l.client)
	}
	return l.frameReader(bufio.NewReader(l.client))
}

func rawReader(conn *net.TCPConn) func() (chunk, error) {
	return func() (chunk, error) {
		buf := make([]byte, chunkSize)
		n, err := conn.Read(buf)
		return chunk{data: buf[:n]}, err
	}
}

// pump moves what next returns to dst, in order, each chunk after the latency
// that held when it was read. Reading and writing are separate, so that latency
// delays without lowering the throughput.
func (l *link) pump(dst, src *net.TCPConn, next func() (chunk, error)) {
	queue := make(chan chunk, queueLength)
	var writer sync.WaitGroup
	writer.Go(func() { l.write(dst, queue) })
	for {
		c, err := next()
		if (len(c.data) > 0 || c.then != nil) && !l.enqueue(queue, c) {
			break
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writer.Wait()
	if l.cut.Load() {
		_, _ = io.Copy(io.Discard, src) // until the peer has seen our FIN and closes too
	}
}

func (l *link) enqueue(queue chan<- chunk, c chunk) bool {
	c.due = time.Now().Add(l.proxy.currentLatency())
	select {
	case queue <- c:
		return true
	case <-l.done:
		return false
	}
}

// write drains queue into dst and then passes the end of the stream on.
func (l *link) write(dst *net.TCPConn, queue <-chan chunk) {
	broken := false
	for c := range queue {
		if broken || !l.wait(c.due) || l.cut.Load() {
			continue
		}
		if _, err := dst.Write(c.data); err != nil {
			broken = true
			l.close() // the other direction has nobody to talk to either
		}
		if c.then != nil {
			c.then()
		}
	}
	if !l.cut.Load() && l.wait(time.Time{}) {
		_ = dst.CloseWrite() // fails only when the socket is gone already
	}
}

// wait returns when it is due and no black hole swallows the link, or false when
// the link has ended.
func (l *link) wait(due time.Time) bool {
	if d := time.Until(due); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.proxy.gate():
		return true
	case <-l.done:
		return false
	}
}

// finish ends both directions with a FIN; bytes under way are dropped.
func (l *link) finish() {
	l.cut.Store(true)
	_ = l.client.CloseWrite() // an error means that the peer was faster
	_ = l.server.CloseWrite()
}

// reset ends both directions with a RST.
func (l *link) reset() {
	l.cut.Store(true)
	l.once.Do(func() {
		close(l.done)
		reset(l.client)
		reset(l.server)
	})
}

func (l *link) close() {
	l.cut.Store(true)
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close() // nothing to learn from closing twice
		_ = l.server.Close()
	})
}

// reset makes the close of conn a RST by dropping what it has not sent.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
