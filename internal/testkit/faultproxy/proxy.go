package faultproxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// dialTimeout bounds the connection to a target that does not answer.
const dialTimeout = 5 * time.Second

// Proxy forwards TCP connections to one target until instructed to misbehave.
type Proxy struct {
	target string
	addr   string

	wg sync.WaitGroup // accept loop and the pumps of every link

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	accepted int
	closed   bool
	latency  time.Duration
	open     chan struct{} // closed while bytes may pass; replaced by a black hole
	hole     bool
	arm      MethodCut
	cutAt    []Method

	short     *ByteCut // armed; nil = not
	shortened int
}

// New listens on a free loopback port and forwards to target (host:port). It
// fails t when there is no port, and closes the proxy when t ends.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	return NewOn(t, "127.0.0.1:0", target)
}

// NewOn is New on an address of the test's choice.
func NewOn(t testing.TB, address, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("faultproxy: listen: %v", err)
	}
	p := &Proxy{
		target: target,
		addr:   listener.Addr().String(),
		links:  make(map[*link]struct{}),
		open:   make(chan struct{}),
	}
	close(p.open)
	p.serve(listener)
	t.Cleanup(p.Close)
	return p
}

// Addr is the host:port to connect to. It stays the same for the proxy's life.
func (p *Proxy) Addr() string { return p.addr }

// Accepted counts the connections let in since New, live or not.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Live counts the connections that neither side nor a fault has ended.
func (p *Proxy) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if !l.cut.Load() {
			n++
		}
	}
	return n
}

// Close ends every connection and waits for the proxy's goroutines. Calling it
// again does nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.stopListening()
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// serve makes listener the current one. Callers hold p.mu, or own p alone.
func (p *Proxy) serve(listener net.Listener) {
	p.listener = listener
	p.wg.Go(func() { p.acceptLoop(listener) })
}

// stopListening closes the port; callers hold p.mu.
func (p *Proxy) stopListening() {
	if p.listener != nil {
		_ = p.listener.Close() // only wakes the accept loop
		p.listener = nil
	}
}

func (p *Proxy) acceptLoop(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse or Close
		}
		p.wg.Go(func() { p.connect(client.(*net.TCPConn)) }) //nolint:forcetypeassert,errcheck // a TCP listener accepts nothing else
	}
}

// connect joins client to a new connection to the target. A target that is down
// looks like a reset to the client, as it would without the proxy in between.
func (p *Proxy) connect(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		reset(client)
		return
	}
	server := conn.(*net.TCPConn) //nolint:forcetypeassert,errcheck // the network is "tcp"
	l := newLink(p, client, server)
	if !p.add(l) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.accepted++
	p.links[l] = struct{}{}
	l.arm, l.short = p.takeArm(), p.takeShort()
	return true
}
