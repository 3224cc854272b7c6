package sqstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a running SQS server. All methods are safe for concurrent use.
type Server struct {
	// URL is the endpoint: http://host:port, or http://sqs.localhost with
	// [Config.NoPort].
	URL string
	// Addr is host:port, "" without a port.
	Addr string

	cfg  Config
	http *http.Server
	done chan struct{}
	wg   sync.WaitGroup

	buffers sync.Pool                       // of *bytes.Buffer
	calls   sync.Pool                       // of *call, without a log
	keys    atomic.Pointer[map[string]bool] // access keys; nil: every one

	// mu guards everything below and the whole state of the queues. Nothing waits
	// under it.
	mu      sync.Mutex
	closed  bool
	queues  map[string]*queue
	deleted map[string]time.Time // when queues of these names were deleted
	moves   []*moveTask
	serials uint64
	virtual virtualClock
	faults  faultList
	log     callLog
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
		tb.Fatalf("sqstest: %v", err)
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
	s := &Server{
		URL:     "http://" + noPortHost,
		cfg:     cfg,
		done:    make(chan struct{}),
		queues:  map[string]*queue{},
		deleted: map[string]time.Time{},
		log:     callLog{limit: cfg.CallLog, counts: map[string]int{}},
	}
	if cfg.VirtualClock {
		s.virtual = virtualClock{on: true, now: time.Now(), moved: make(chan struct{})}
	}
	if cfg.AccessKeys != nil {
		s.AllowKeys(cfg.AccessKeys...)
	}
	if cfg.NoPort {
		return s, nil
	}
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("sqstest: %w", err)
	}
	s.Addr = ln.Addr().String()
	s.URL = "http://" + s.Addr
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.wg.Go(func() { _ = s.http.Serve(listener{ln}) }) // it ends with Close
	return s, nil
}

// Close ends every call, frees the port and returns when every goroutine of the
// server has ended. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first {
		close(s.done)
	}
	s.mu.Unlock()
	var err error
	if first && s.http != nil {
		err = s.http.Close()
	}
	s.wg.Wait()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// enter counts a running call, so that Close waits for it; false after Close.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// AllowKeys lets only calls with these access keys in; no argument lets nobody
// in. Others get InvalidClientTokenId.
func (s *Server) AllowKeys(keys ...string) {
	allowed := make(map[string]bool, len(keys))
	for _, k := range keys {
		allowed[k] = true
	}
	s.keys.Store(&allowed)
}

// sleep waits d of the real clock (of the bubble, inside testing/synctest).
func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.done:
		return errAborted
	case <-ctx.Done():
		return ctx.Err()
	}
}
