package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/history"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/transport"
)

// Server is the admin API, a component of package lifecycle.
type Server struct {
	cfg    Config
	hosts  []string
	byName map[string]*container.ListenerContainer
	hub    *hub
	meters map[string]*meter

	instance string    // the name of this process for people
	version  string    // of the program; "" where it was not built from a module
	started  time.Time // tells one run of the process from the next

	past     map[string]*history.History
	troubles map[string]*troubles
	now      live
	logins   logins
	details  map[string]*details
	jobs     jobs
	hasDead  map[string]bool // containers whose dead letters can be looked at

	streams      chan struct{} // a place for each stream of events
	failedLogins atomic.Int64
	quiet        logs.Quiet // of the line about them

	mu     sync.Mutex
	paused map[string]pausedBy
	made   map[string]transport.Secret // the operator of a token made here
	http   *http.Server
	addr   string
	file   string // the token's
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// pausedBy is who paused a container, when and why.
type pausedBy struct {
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// New checks the configuration; it does no I/O. The error joins everything that is
// wrong.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(cfg.Addr) // checked
	s := &Server{cfg: cfg, streams: make(chan struct{}, maxStreams), byName: map[string]*container.ListenerContainer{}, paused: map[string]pausedBy{},
		meters: map[string]*meter{}, hub: newHub(), instance: cfg.Instance, started: time.Now(), version: version(),
		past: map[string]*history.History{}, troubles: map[string]*troubles{}, details: map[string]*details{}, hasDead: map[string]bool{}}
	for _, h := range append([]string{host}, cfg.Hosts...) {
		if h != "" {
			s.hosts = append(s.hosts, strings.ToLower(h))
		}
	}
	for _, c := range cfg.Containers {
		s.byName[c.Name()] = c
		s.meters[c.Name()], s.past[c.Name()], s.troubles[c.Name()] = &meter{}, &history.History{}, &troubles{}
		s.details[c.Name()], s.hasDead[c.Name()] = &details{}, s.deadSource(c) != nil
	}
	return s, nil
}

// version is that of the program's module.
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

func (s *Server) operators() map[string]transport.Secret {
	if len(s.cfg.Operators) > 0 {
		return s.cfg.Operators
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// Start listens and returns when requests are answered. On a running server it does
// nothing.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	for kind, people := range map[string]map[string]transport.Secret{"operator": s.cfg.Operators, "viewer": s.cfg.Viewers} {
		for name, secret := range people {
			if token, err := secret.Get(ctx); err != nil || len(token) < MinToken {
				return &longshore.Error{Code: longshore.CodeConfig, Op: "serve the admin API", Hint: fmt.Sprintf("use a token of at least %d characters", MinToken),
					Err: fmt.Errorf("the token of %s %q cannot be read or is too short", kind, name)}
			}
		}
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "serve the admin API at " + s.cfg.Addr, Err: err, Hint: "is another instance running? set another Addr (in longshore.yaml admin.listen)"}
	}
	if err := s.makeToken(ln.Addr().String()); err != nil {
		return errors.Join(err, ln.Close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.addr, s.cancel = ln.Addr().String(), cancel
	s.http = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: 1 << 16, TLSConfig: s.cfg.TLS,
		BaseContext: func(net.Listener) context.Context { return run }}
	serve := s.http
	ln = &limitedListener{Listener: ln, places: make(chan struct{}, maxConns)}
	s.wg.Go(func() {
		if s.cfg.TLS != nil {
			_ = serve.ServeTLS(ln, "", "") // ends with Stop
			return
		}
		_ = serve.Serve(ln)
	})
	s.wg.Go(func() { s.watch(run) })
	s.jobs.start(run)
	return nil
}

// makeToken writes a token where there is no operator. The caller holds mu.
func (s *Server) makeToken(addr string) error {
	if len(s.cfg.Operators) > 0 {
		return nil
	}
	path := s.cfg.TokenFile
	if path == "" {
		path = TokenFile(addr)
	}
	token, err := writeToken(path)
	if err != nil && s.cfg.TokenFile == "" {
		// Another user of this host may have taken the default place. The service starts all
		// the same, and nobody can change anything here.
		s.cfg.Logger.Warn("no admin token was written, changes are refused", logs.Failure(err)...)
		return nil
	}
	if err != nil {
		return err
	}
	s.file = path
	s.made = map[string]transport.Secret{"local": transport.Static(token)}
	return nil
}

// Stop ends streams, lets requests end for a second, and closes the rest: a client that
// reads nothing must not delay the stop of the service.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	serve, cancel, file := s.http, s.cancel, s.file
	s.http, s.addr, s.file, s.made = nil, "", "", nil
	s.mu.Unlock()
	if serve == nil {
		return nil
	}
	cancel() // streams do not end by themselves
	short, done := context.WithTimeout(ctx, stopTime)
	defer done()
	var err error
	if serve.Shutdown(short) != nil {
		err = serve.Close()
	}
	s.wg.Wait()
	s.jobs.stop()
	if file != "" {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
