package amqptest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Server is a running AMQP server. All methods are safe for concurrent use.
type Server struct {
	// URL to connect to, with the first user's credentials and the first virtual
	// host.
	URL string
	// Addr the server listens on, host:port. It stays the same over
	// [Server.Refuse] and [Server.Accept].
	Addr string

	cfg Config

	// mu guards everything below and the whole broker state: vhosts, queues,
	// channels. No socket is touched under it; pending output goes to a
	// connection's outbox.
	mu       sync.Mutex
	resumed  *sync.Cond // a reader that stands still may go on, or must end
	now      time.Time  // time of the running transaction
	alarms   alarms
	dirty    []*queue // queues with something to do before the lock is released
	listener net.Listener
	vhosts   map[string]*vhost
	accounts map[string]*account
	conns    map[*conn]struct{}
	closed   bool
	ids      uint64
	controls controls
	log      methodLog

	rearm chan struct{}
	done  chan struct{}
	wg    sync.WaitGroup
}

// TB is the part of testing.TB that New uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// New starts a server that closes with the test. At most one Config is used.
func New(tb TB, config ...Config) *Server {
	tb.Helper()
	var cfg Config
	if len(config) > 0 {
		cfg = config[0]
	}
	s, err := Start(cfg)
	if err != nil {
		tb.Fatalf("amqptest: %v", err)
		return nil
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Start starts a server; the caller closes it. It fails when the configuration
// is wrong or the address cannot be listened on.
func Start(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("amqptest: %w", err)
	}
	s := &Server{
		Addr:     ln.Addr().String(),
		cfg:      cfg,
		now:      time.Now(),
		listener: ln,
		vhosts:   map[string]*vhost{},
		accounts: map[string]*account{},
		conns:    map[*conn]struct{}{},
		rearm:    make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	s.resumed = sync.NewCond(&s.mu)
	s.controls.consumerTimeout = cfg.ConsumerTimeout
	for _, u := range cfg.Users {
		s.accounts[u.Name] = newAccount(u)
	}
	for _, name := range cfg.VHosts {
		s.vhosts[name] = newVHost(s, name)
	}
	s.URL = s.url()
	s.wg.Add(1)
	go s.accept(ln)
	if !cfg.VirtualClock {
		s.wg.Add(1)
		go s.runClock()
	}
	return s, nil
}

func (s *Server) url() string {
	u := url.URL{Scheme: "amqp", Host: s.Addr}
	if s.cfg.TLS != nil {
		u.Scheme = "amqps"
	}
	if len(s.cfg.Users) > 0 {
		u.User = url.UserPassword(s.cfg.Users[0].Name, s.cfg.Users[0].Password)
	}
	if len(s.cfg.VHosts) > 0 {
		u.Path, u.RawPath = "/"+s.cfg.VHosts[0], "/"+url.PathEscape(s.cfg.VHosts[0])
	}
	return u.String()
}

// begin opens a transaction on the broker state, end finishes the work it
// caused (deliveries, expiry) and closes it.
func (s *Server) begin() {
	s.mu.Lock()
	if !s.cfg.VirtualClock {
		s.now = time.Now()
	}
}

func (s *Server) end() {
	s.work()
	s.mu.Unlock()
}

func (s *Server) nextID() uint64 {
	s.ids++
	return s.ids
}

func (s *Server) accept(ln net.Listener) {
	defer s.wg.Done()
	for {
		nc, err := ln.Accept()
		if err != nil {
			return // closed, by Close or Refuse
		}
		if s.cfg.TLS != nil {
			nc = tls.Server(nc, s.cfg.TLS)
		}
		s.begin()
		if s.closed || s.controls.refusing {
			s.end()
			_ = nc.Close()
			continue
		}
		c := newConn(s, nc)
		s.conns[c] = struct{}{}
		s.wg.Add(2)
		s.end()
		go c.read()
		go c.write()
	}
}

// Close drops every connection, frees the port and returns when every goroutine
// of the server has ended. It is idempotent.
func (s *Server) Close() error {
	s.begin()
	if !s.closed {
		s.closed = true
		close(s.done)
		_ = s.listener.Close()
		for c := range s.conns {
			c.cut()
		}
		s.resumed.Broadcast()
	}
	s.end()
	s.wg.Wait()
	return nil
}
