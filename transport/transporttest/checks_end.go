package transporttest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func endChecks() []check {
	return []check{
		{name: "cancel-keeps-settleable", run: cancelKeepsSettleable},
		{name: "cancel-hands-out-buffer", run: cancelHandsOutBuffer},
		{name: "cancel-ends-waiting-receive", run: cancelEndsWaitingReceive},
		{name: "cancel-stops-the-broker", run: cancelStopsTheBroker},
		{name: "cancel-under-load", run: cancelUnderLoad},
		{name: "release", run: releases},
		{name: "release-uncounted", run: releaseDoesNotCount},
		{name: "cancel-keeps-nacked", run: cancelKeepsNacked},
		{name: "close-gives-back", run: closeGivesBack},
		{name: "close-ends-calls", run: closeEndsCalls},
		{name: "close-sends-accepted", run: closeSendsAccepted},
		{name: "close-bounded", needs: needs("Stall"), run: closeBounded},
		{name: "latency", needs: needs("Latency"), run: underLatency},
	}
}

func cancelKeepsSettleable(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(4)...)
	ds := s.take(2)
	s.cancel()
	for _, d := range ds {
		if !d.Owned() || d.Context().Err() != nil {
			e.Errorf("%s: lost by Cancel", d.Body)
		}
	}
	s.ack(ds...)
	s.cancel() // again: nothing happens
	s.finish()
	held := bodiesOf(ds)
	e.holds(src, "after two were acked behind Cancel", without(bodies(4), held)...)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(b string) bool { return slices.Contains(some, b) })
}

// afterCancel receives until ErrCanceled.
func (s *sub) afterCancel() []*longshore.Delivery {
	s.e.Helper()
	var all []*longshore.Delivery
	deadline := time.Now().Add(s.e.h.Patience)
	for {
		ds, err := s.within(time.Until(deadline), 2)
		if err != nil {
			s.e.wants("Receive after Cancel", err, longshore.ErrCanceled)
			return all
		}
		if all = append(all, ds...); len(all) > tooMany {
			s.e.Fatalf("Receive hands out more and more behind Cancel")
		}
	}
}

func cancelHandsOutBuffer(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{Window: 6, MaxWindow: 6})
	e.publish(src, bodies(6)...)
	ds := s.take(1)
	held := 0
	if b, ok := s.Consumer.(transport.Bufferer); ok {
		// A push transport fills its buffer now; one that fetches on demand has none.
		last := -1
		e.within(e.h.Quiet, func() bool {
			held = b.Buffered()
			still := held == last
			last = held
			return held == 5 || (still && held > 0)
		})
		held = b.Buffered()
	}
	s.cancel()
	rest := s.afterCancel()
	if len(rest) < held {
		e.Errorf("%d were buffered before Cancel, Receive handed out %d after it", held, len(rest))
	}
	_, err := s.within(e.h.Patience, 1)
	e.wants("second Receive after the buffer", err, longshore.ErrCanceled)
	ds = append(ds, rest...)
	s.ack(ds...)
	s.finish()
	e.holds(src, "after what was buffered at Cancel was acked", without(bodies(6), bodiesOf(ds))...)
}

func cancelEndsWaitingReceive(e *env) {
	s := e.open(e.h.Source(e), transport.OpenOptions{})
	got := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background(), 1)
		got <- err
	}()
	s.cancel()
	e.must("Receive that waited when Cancel was called", func(ctx context.Context) error {
		select {
		case err := <-got:
			e.wants("Receive that waited when Cancel was called", err, longshore.ErrCanceled)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// After Cancel returned nothing new arrives.
func cancelStopsTheBroker(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "before")
	first := s.take(1)
	s.cancel()
	e.publish(src, "after")
	for _, d := range s.afterCancel() {
		e.Errorf("%q was published after Cancel and received", d.Body)
	}
	s.ack(first...)
	s.finish()
	e.holds(src, "after Cancel", "after")
}

// publishUntil publishes some more when it is enough, and returns what was published.
func publishUntil(e *env, src transport.Source, all []string, enough, over <-chan struct{}) []string {
	more := 5
	for i, b := range all {
		select {
		case <-over:
			return all[:i]
		case <-enough:
			if more--; more == 0 {
				return all[:i]
			}
		default:
		}
		e.publish(src, b)
	}
	return all
}

// Messages stream in while intake stops: each is acked or comes back. F-A06
func cancelUnderLoad(e *env) {
	src := e.h.Source(e)
	const n = 120
	s := e.open(src, transport.OpenOptions{Window: 8, MaxWindow: 8})
	var published, acked []string
	enough := make(chan struct{})
	var load sync.WaitGroup
	life, end := context.WithCancel(context.Background())
	e.Cleanup(func() { // also when the check ends early: nothing is published or received after it
		end()
		_, _ = e.attempt(e.h.Patience, func(context.Context) error { load.Wait(); return nil })
	})
	load.Go(func() { published = publishUntil(e, src, bodies(n), enough, life.Done()) }) //nolint:contextcheck // each step has a time of its own
	received := make(chan struct{})
	load.Go(func() {
		told := false
		for {
			ctx, cancel := context.WithTimeout(life, e.h.Patience)
			ds, err := s.Receive(ctx, 3)
			cancel()
			if life.Err() != nil {
				return
			}
			if err != nil {
				e.wants("Receive under load", err, longshore.ErrCanceled)
				return
			}
			for _, d := range ds {
				if err := d.Ack(context.Background()); err != nil { //nolint:contextcheck // an ack is not given up
					e.Errorf("Ack: %v", err)
				}
				acked = append(acked, string(d.Body))
			}
			if !told && len(acked) > n/4 {
				close(received)
				told = true
			}
		}
	})
	e.must("a quarter of the messages", func(ctx context.Context) error {
		select {
		case <-received:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	s.cancel()
	s.release()
	close(enough)
	e.must("publishing and receiving after Cancel", func(context.Context) error { load.Wait(); return nil })
	s.finish()
	e.holds(src, "after Cancel and Release under load", without(published, acked)...)
}

func releases(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{Window: 6, MaxWindow: 6})
	e.publish(src, bodies(6)...)
	ds := s.take(2)
	s.cancel()
	s.release()
	_, err := s.within(e.h.Patience, 10)
	e.wants("Receive after Cancel and Release", err, longshore.ErrCanceled)
	if b, ok := s.Consumer.(transport.Bufferer); ok && b.Buffered() != 0 {
		e.Errorf("Buffered is %d after Release", b.Buffered())
	}
	if e.h.Depth != nil {
		if _, out := e.h.Depth(e, src); out >= 0 {
			e.until("the broker counts only the two that were handed out as unsettled", func() bool {
				_, out := e.h.Depth(e, src)
				return out == 2
			})
		}
	}
	s.ack(ds...)
	s.finish()
	e.holds(src, "after Release", without(bodies(6), bodiesOf(ds))...)
}

// F-G01: unstarted messages come back as they were.
func releaseDoesNotCount(e *env) {
	src := e.h.Source(e)
	for range 3 {
		s := e.open(src, transport.OpenOptions{Window: 4, MaxWindow: 4})
		switch {
		case !s.caps.Attempts:
			e.without("Attempts is false")
			return
		case s.caps.CountsReturns:
			e.without("CountsReturns")
			return
		}
		if b, ok := s.Consumer.(transport.Bufferer); ok {
			e.publish(src, "m-"+unique())
			e.within(e.h.Quiet, func() bool { return b.Buffered() > 0 })
		}
		s.cancel()
		s.release()
		s.shut()
	}
	s := e.open(src, transport.OpenOptions{})
	ds, _ := s.drain()
	for _, d := range ds {
		if d.Attempt != 1 {
			e.Errorf("%s: attempt %d, it was released and no handler saw it", d.Body, d.Attempt)
		}
	}
	s.ack(ds...)
}

// What is given back behind Cancel, at once or with a delay, is not lost by the
// Close that follows.
func cancelKeepsNacked(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "now", "later")
	ds := s.take(2)
	s.cancel()
	e.must("Nack behind Cancel", func(ctx context.Context) error { return ds[0].Nack(ctx, 0) })
	if s.caps.Delay {
		e.must("Nack with a delay behind Cancel", func(ctx context.Context) error { return ds[1].Nack(ctx, e.h.Delay) })
	}
	s.finish()
	next := e.open(src, transport.OpenOptions{})
	again := next.take(2)
	if got := sorted(bodiesOf(again)); !slices.Equal(got, []string{"later", "now"}) {
		e.Errorf("after nacks behind Cancel came %v", got)
	}
	next.ack(again...)
	next.finish()
	e.holds(src, "after what was nacked behind Cancel was acked")
}
