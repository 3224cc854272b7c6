package bridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/transport"
)

// How often a route looks at both sides: a finite one waits for its end.
const (
	lookEvery   = 5 * time.Second
	lookToEnd   = time.Second
	lookLeast   = 50 * time.Millisecond
	lookTimeout = 10 * time.Second
)

// ending decides when a source is empty for good.
type ending struct {
	quiet time.Duration // how long it must stay empty; 0: the route does not end
	since time.Time     // since when it is empty; zero: it is not
}

// done takes what remains now. busy: the route itself holds messages.
func (e *ending) done(now time.Time, left *transport.Remaining, busy bool) bool {
	if e.quiet == 0 {
		return false
	}
	if left.Messages() > 0 || busy {
		e.since = time.Time{}
		return false
	}
	if e.since.IsZero() {
		e.since = now
	}
	return now.Sub(e.since) >= max(e.quiet, left.Lag)
}

// watch looks at both sides of a route while it runs: for its progress, its end, and for what
// must stop it. Its goroutine is started and awaited by the route.
type watch struct {
	r      *view
	alone  bool                        // Config.Alone
	guard  func(context.Context) error // Config.Guard; nil: none
	sides  []*incarnation
	ending ending

	mu       sync.Mutex
	meter    meter
	progress Progress
}

// view is what a watch sees of its route.
type view struct {
	from    transport.Source
	now     func() time.Time
	stats   func() Stats
	busy    func() bool          // messages are held
	refused <-chan *StoppedError // the handler wants the route to stop
	ended   func() <-chan struct{}
}

// run looks until ctx ends, the source is empty for good (nil, true), or something must stop the
// route.
func (w *watch) run(ctx context.Context) (*StoppedError, bool) {
	every := lookEvery
	if w.ending.quiet > 0 {
		every = min(lookToEnd, max(w.ending.quiet/4, lookLeast))
	}
	for _, s := range w.sides {
		s.begin(ctx)
	}
	w.ending.since = time.Time{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	ended := w.r.ended()
	for {
		if why, over := w.look(ctx); why != nil || over {
			return why, over
		}
		select {
		case <-ctx.Done():
			return nil, false
		case why := <-w.r.refused:
			return why, false
		case <-ended:
			return &StoppedError{Reason: ContainerEnded, Err: fmt.Errorf("its container has ended")}, false
		case <-tick.C:
		}
	}
}

// look looks once.
func (w *watch) look(ctx context.Context) (*StoppedError, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for _, s := range w.sides {
		if why := s.check(ctx); why != nil {
			return why, false
		}
	}
	if w.guard != nil {
		if err := w.guard(ctx); err != nil && ctx.Err() == nil {
			return &StoppedError{Reason: Guarded, Err: err}, false
		}
	}
	left, err := remainingAt(ctx, w.r.from)
	w.note(left, err)
	if err != nil {
		return nil, false
	}
	if w.alone && w.r.from.Capabilities().Partitions && left.Consumers > 1 {
		return &StoppedError{Reason: OtherConsumers, Err: fmt.Errorf("the source has %d consumers, and one is this route", left.Consumers)}, false
	}
	return nil, w.ending.done(w.r.now(), &left, w.r.busy())
}

// note keeps what Progress reports.
func (w *watch) note(left transport.Remaining, err error) {
	stats := w.r.stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.progress
	p.At, p.Moved = w.r.now(), stats.moved()
	if err != nil {
		p.Lag, p.Known = -1, -1
		return
	}
	p.Lag, p.Delayed = left.Messages(), left.Delayed
	p.Known = p.Moved + p.Lag
	w.meter.read(p.At, p.Moved, p.Lag)
	p.Rate, p.In, p.ETA = w.meter.rate, w.meter.in(), w.meter.eta()
}

// last is the latest progress.
func (w *watch) last() Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress
}
