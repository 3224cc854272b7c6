package throttle

import (
	"context"
	"slices"
	"time"
)

// waiter is a call of Acquire that waits.
type waiter struct {
	granted chan struct{} // closed with mu held
	has     bool          // guarded by mu
}

// Acquire waits for a permit and a start, in the order of the calls. The error is
// the cause of ctx; then nothing was taken. After nil, call [Limiter.Release] once.
func (l *Limiter) Acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := time.Now()
	l.mu.Lock()
	if len(l.queue) == 0 {
		if ok, _ := l.take(now); ok {
			l.mu.Unlock()
			return nil
		}
	}
	w := &waiter{granted: make(chan struct{})}
	l.queue = append(l.queue, w)
	l.serve(now)
	l.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		l.leave(w)
		return context.Cause(ctx)
	}
}

// serve hands out to the queue what there is. The caller holds mu.
func (l *Limiter) serve(now time.Time) {
	for len(l.queue) > 0 {
		ok, again := l.take(now)
		if !ok {
			l.lookAgain(now, again)
			return
		}
		l.grant()
	}
}

// grant gives the oldest waiter what was just taken. The caller holds mu.
func (l *Limiter) grant() {
	w := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	w.has = true
	close(w.granted)
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// lookAgain sets the time at which the head of the queue can be served. The caller
// holds mu.
func (l *Limiter) lookAgain(now, again time.Time) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if again.IsZero() {
		return // a release or a change serves the queue
	}
	l.timer = time.AfterFunc(again.Sub(now), func() {
		l.mu.Lock()
		l.advance()
	})
}

// leave takes a cancelled waiter out. What it was given in the same instant goes to
// the next.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	if !w.has {
		l.queue = slices.DeleteFunc(l.queue, func(x *waiter) bool { return x == w })
		l.advance() // who was refused because of the queue may come now
		return
	}
	if l.now.Permits >= 0 && l.inUse > l.now.Permits || len(l.queue) == 0 || l.bucket == nil && l.now.Rate >= 0 {
		l.inUse--
		if l.bucket != nil {
			l.spare = min(l.spare+1, l.now.burst())
		}
		l.advance()
		return
	}
	l.grant()
	l.mu.Unlock()
}
