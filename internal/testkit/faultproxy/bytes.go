package faultproxy

import "io"

// ByteCut says where to end connections of any protocol, TLS too.
type ByteCut struct {
	// N bytes of one side arrive, and then the end. 0 ends a connection at once, a
	// negative number disarms.
	N int
	// FromServer counts the server's bytes; else the client's.
	FromServer bool
	// Connections bounds how many connections accepted from now on are cut; later
	// ones are healthy. 0 means all of them.
	Connections int
	// Reset ends with a RST instead of a FIN.
	Reset bool
}

// CutAfter arms the cut for connections accepted from now on; live ones keep what
// they were accepted with.
func (p *Proxy) CutAfter(cut ByteCut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = nil
	if cut.N >= 0 {
		p.short = &cut
	}
}

// ByteCuts counts the connections that were cut after a number of bytes, or are
// this moment.
func (p *Proxy) ByteCuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shortened
}

// takeShort hands the armed cut to a new connection; callers hold p.mu.
func (p *Proxy) takeShort() *ByteCut {
	cut := p.short
	if cut != nil && cut.Connections > 0 {
		if cut.Connections--; cut.Connections == 0 {
			p.short = nil
		}
	}
	return cut
}

// shorten reads no more than the link may pass, and then its end with the cut as
// its last act. Links of the other direction are left as they are.
func (l *link) shorten(fromServer bool, next func() (chunk, error)) func() (chunk, error) {
	if l.short == nil || l.short.FromServer != fromServer {
		return next
	}
	left, reset := l.short.N, l.short.Reset
	return func() (c chunk, err error) {
		if left > 0 {
			c, err = next()
		}
		if left -= len(c.data); left > 0 || err != nil {
			return c, err
		}
		c.data = c.data[:len(c.data)+left]
		c.then = func() { l.endShort(reset) }
		return c, io.EOF
	}
}

func (l *link) endShort(reset bool) {
	l.proxy.mu.Lock()
	l.proxy.shortened++
	l.proxy.mu.Unlock()
	if reset {
		l.reset()
	} else {
		l.finish()
	}
}
