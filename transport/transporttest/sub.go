package transporttest

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// sub is an open consumer under observation.
type sub struct {
	transport.Consumer
	e      *env
	src    transport.Source
	obs    *watcher
	caps   transport.Capabilities
	closed bool
}

// open opens the source and closes the consumer at the end of the check.
func (e *env) open(src transport.Source, o transport.OpenOptions) *sub {
	e.Helper()
	s := &sub{e: e, src: src, obs: newWatcher()}
	o.Observer = s.obs
	e.must("Open", func(ctx context.Context) (err error) {
		s.Consumer, err = src.Open(ctx, o)
		return err
	})
	s.caps = capabilities(src, s.Consumer)
	e.Cleanup(func() {
		if s.closed {
			return
		}
		if back, _ := e.attempt(e.h.Patience, s.Close); !back {
			e.Errorf("Close did not return %s after its context had ended", e.grace())
		}
	})
	return s
}

// within is one Receive that may take so long.
func (s *sub) within(wait time.Duration, most int) (ds []*longshore.Delivery, err error) {
	s.e.Helper()
	var back bool
	back, err = s.e.attempt(max(wait, time.Millisecond), func(ctx context.Context) (err error) {
		ds, err = s.Receive(ctx, most)
		return err
	})
	if !back {
		s.e.Fatalf("Receive did not return %s after its context had ended", s.e.grace())
	}
	if err == nil && len(ds) == 0 {
		s.e.Fatal("Receive returned neither a delivery nor an error")
	}
	if len(ds) > most {
		s.e.Fatalf("Receive returned %d deliveries, at most %d were asked for", len(ds), most)
	}
	return ds, err
}

// take receives exactly n deliveries, in as many calls as it needs.
func (s *sub) take(n int) []*longshore.Delivery {
	s.e.Helper()
	var ds []*longshore.Delivery
	deadline := time.Now().Add(s.e.h.Patience)
	for len(ds) < n {
		got, err := s.within(time.Until(deadline), n-len(ds))
		if err != nil {
			s.e.Fatalf("Receive, with %d of %d deliveries received: %v", len(ds), n, err)
		}
		ds = append(ds, got...)
	}
	return ds
}

// drain receives what comes until nothing came for a while, and an end that is
// not ctx's.
func (s *sub) drain() (ds []*longshore.Delivery, end error) {
	s.e.Helper()
	for {
		got, err := s.within(s.e.h.Quiet, 10)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			return ds, err
		}
		if ds = append(ds, got...); len(ds) > tooMany {
			s.e.Fatalf("%d deliveries came, far more than were published", len(ds))
		}
	}
}

func (s *sub) ack(ds ...*longshore.Delivery) {
	s.e.Helper()
	for _, d := range ds {
		s.e.must("Ack", d.Ack)
	}
}

func (s *sub) flush()   { s.e.Helper(); s.e.must("Flush", s.Flush) }
func (s *sub) cancel()  { s.e.Helper(); s.e.must("Cancel", s.Cancel) }
func (s *sub) release() { s.e.Helper(); s.e.must("Release", s.Release) }

func (s *sub) shut() {
	s.e.Helper()
	s.closed = true
	s.e.must("Close", s.Close)
}

// finish confirms what was settled and closes.
func (s *sub) finish() {
	s.e.Helper()
	s.flush()
	s.shut()
}

// wants checks an error of a call.
func (e *env) wants(what string, err error, anyOf ...error) {
	e.Helper()
	for _, w := range anyOf {
		if errors.Is(err, w) {
			return
		}
	}
	e.Errorf("%s: got %v, want %v", what, err, anyOf)
}

// watcher is an observer that remembers.
type watcher struct {
	sem    chan struct{} // a mutex would stop the time of testing/synctest
	lost   map[*longshore.Delivery]int
	failed map[*longshore.Delivery][]longshore.Settlement
	cause  error
	downs  []error
}

func newWatcher() *watcher { return &watcher{sem: make(chan struct{}, 1)} }

func (w *watcher) lock() (unlock func()) {
	w.sem <- struct{}{}
	return func() { <-w.sem }
}

func (w *watcher) Lost(ds []*longshore.Delivery, cause error) {
	defer w.lock()()
	if w.lost == nil {
		w.lost = map[*longshore.Delivery]int{}
	}
	for _, d := range ds {
		w.lost[d]++
	}
	w.cause = cause
}

func (w *watcher) SettleFailed(d *longshore.Delivery, s longshore.Settlement, _ error) {
	defer w.lock()()
	if w.failed == nil {
		w.failed = map[*longshore.Delivery][]longshore.Settlement{}
	}
	w.failed[d] = append(w.failed[d], s)
}

func (w *watcher) Down(err error) {
	defer w.lock()()
	w.downs = append(w.downs, err)
}

func (w *watcher) Event(transport.Event) {}

func (w *watcher) isDown() bool { return len(w.ends()) > 0 }

func (w *watcher) ends() []error {
	defer w.lock()()
	return append([]error(nil), w.downs...)
}

// losses returns how often d was reported lost.
func (w *watcher) losses(d *longshore.Delivery) int {
	defer w.lock()()
	return w.lost[d]
}

// failures returns the settlements of d that were reported as failed.
func (w *watcher) failures(d *longshore.Delivery) []longshore.Settlement {
	defer w.lock()()
	return append([]longshore.Settlement(nil), w.failed[d]...)
}
