package sqstest

import (
	"context"
	"time"
)

// virtualClock is a clock that stands still until it is moved.
type virtualClock struct {
	on    bool
	now   time.Time
	moved chan struct{} // closed and replaced when it moves
}

// clock returns the server's time. The caller holds mu.
func (s *Server) clock() time.Time {
	if s.virtual.on {
		return s.virtual.now
	}
	return time.Now()
}

// Now is the time of the server's clock: what every timeout and timestamp uses.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock()
}

// Advance moves a virtual clock on by d. What falls due on the way is done in
// order, as seen by the next call; open long polls look again. Without
// [Config.VirtualClock] it does nothing. Latency and held answers always follow
// the real clock.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.virtual.on {
		return
	}
	s.virtual.now = s.virtual.now.Add(d)
	close(s.virtual.moved)
	s.virtual.moved = make(chan struct{})
}

// await waits until changed is closed, the server's clock reaches until, or
// the call ends; then it returns an error.
func (s *Server) await(ctx context.Context, changed, moved <-chan struct{}, wait time.Duration) error {
	var due <-chan time.Time
	if moved == nil { // the real clock
		t := time.NewTimer(max(wait, 0))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-moved:
	case <-due:
	case <-s.done:
		return errAborted
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
