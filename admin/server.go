package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// Server is the admin API, a component of package lifecycle. It listens and has the table of
// routes; the handlers are methods of the parts that have the data.
type Server struct {
	cfg         Config
	access      *access
	containers  *containers
	journal     journal
	steering    *steering
	deadLetters *deadLetters
	feed        *feed

	mu     sync.Mutex
	http   *http.Server // nil: it does not run
	addr   string
	cancel context.CancelFunc
	wg     sync.WaitGroup // of the listener and the feed
}

// New checks the configuration; it does no I/O. The error joins everything that is
// wrong.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cs, h := newContainers(&cfg), newHub()
	s := &Server{cfg: cfg, access: newAccess(&cfg), containers: cs, journal: journal{cfg.Instance, h, cfg.Logger}}
	s.steering = &steering{cs, s.journal, cfg.Fleet}
	s.deadLetters = newDeadLetters(&cfg, cs, s.journal)
	s.feed = &feed{containers: cs, hub: h, greet: s.greet, stillMay: s.access.stillMay, streams: make(chan struct{}, maxStreams)}
	return s, nil
}

// greet is what a stream's caller learns besides the containers.
func (s *Server) greet(ctx context.Context) greeting {
	return greeting{s.access.session(ctx), s.deadLetters.jobs.shown(ctx), s.cfg.Actions}
}

// version is that of the program's module, "" where it was not built from one.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return ""
}

// Name is "admin".
func (s *Server) Name() string { return "admin" }

// Phase lets it outlive the containers.
func (s *Server) Phase() int { return 300 }

// Addr is where it listens, "" while it does not.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Link is the address of the page with a code by which one browser is logged in as
// an operator, once and within an hour. It is empty while the server does not run, or
// where no operator has a token.
func (s *Server) Link(ctx context.Context) string {
	addr := s.Addr()
	if addr == "" {
		return ""
	}
	code := s.access.linkCode(ctx)
	if code == "" {
		return ""
	}
	scheme := "http"
	if s.cfg.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + addr + "/#login=" + code
}

// FailedLogins returns how many requests had an unknown token.
func (s *Server) FailedLogins() int64 { return s.access.failed.Load() }

// Start listens and returns when requests are answered. On a running server it does
// nothing.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	if err := s.access.check(ctx); err != nil {
		return err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "serve the admin API at " + s.cfg.Addr, Err: err, Hint: "is another instance running? set another Addr (in longshore.yaml admin.listen)"}
	}
	if err := s.access.makeToken(s.cfg.TokenFile, ln.Addr().String()); err != nil {
		return errors.Join(err, ln.Close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.addr, s.cancel = ln.Addr().String(), cancel
	s.http = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: 1 << 16, TLSConfig: s.cfg.TLS,
		BaseContext: func(net.Listener) context.Context { return run }}
	s.deadLetters.jobs.start(run)
	serve := s.http
	ln = &limitedListener{Listener: ln, places: make(chan struct{}, maxConns)}
	s.wg.Go(func() {
		if s.cfg.TLS != nil {
			_ = serve.ServeTLS(ln, "", "") // ends with Stop
			return
		}
		_ = serve.Serve(ln)
	})
	s.wg.Go(func() { s.feed.watch(run) })
	return nil
}

// Stop ends streams, lets requests end for a second, and closes the rest: a client that
// reads nothing must not delay the stop of the service.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	serve, cancel := s.http, s.cancel
	s.http, s.addr = nil, ""
	if serve == nil {
		s.mu.Unlock()
		return nil
	}
	err := s.access.withdrawToken()
	s.mu.Unlock()
	cancel() // streams do not end by themselves
	short, done := context.WithTimeout(ctx, stopTime)
	defer done()
	if serve.Shutdown(short) != nil {
		err = errors.Join(err, serve.Close())
	}
	s.wg.Wait()
	s.deadLetters.jobs.stop()
	return err
}
