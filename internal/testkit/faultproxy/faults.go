package faultproxy

import (
	"fmt"
	"net"
	"time"
)

// relistenTimeout bounds how long Listen waits for a port that something took
// while the proxy was refusing.
const relistenTimeout = 2 * time.Second

// CutAll ends every live connection with a FIN on both sides, as an orderly close
// of the peer looks. Bytes under way are lost. It returns how many it ended.
func (p *Proxy) CutAll() int { return p.endAll((*link).finish) }

// ResetAll ends every live connection with a RST on both sides, as a crashed peer or
// a firewall does. It returns how many it ended.
func (p *Proxy) ResetAll() int { return p.endAll((*link).reset) }

func (p *Proxy) endAll(end func(*link)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if !l.cut.Load() {
			end(l)
			n++
		}
	}
	return n
}

// BlackHole lets connections stand and come, yet no byte passes, not even the end
// of a stream: what a broken route looks like. BlackHole(false) lets everything
// held go on.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && !p.hole:
		p.open = make(chan struct{})
	case !on && p.hole:
		close(p.open)
	}
	p.hole = on
}

// Latency delays every byte in both directions by d from now on; 0 ends it.
// It does not lower the throughput.
func (p *Proxy) Latency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// Refuse closes the port: new connections are refused, live ones go on (CutAll
// or ResetAll end them). Calling it again does nothing.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopListening()
}

// Listen ends Refuse: the proxy is back on the same port. It fails when
// another process took the port meanwhile, or after Close.
func (p *Proxy) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("faultproxy: listen on %s: %w", p.addr, net.ErrClosed)
	}
	if p.listener != nil {
		return nil
	}
	deadline := time.Now().Add(relistenTimeout)
	for {
		listener, err := net.Listen("tcp", p.addr)
		if err == nil {
			p.serve(listener)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("faultproxy: listen again: %w", err)
		}
		<-time.After(10 * time.Millisecond) // the kernel still holds the old socket
	}
}

func (p *Proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *Proxy) currentLatency() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latency
}
