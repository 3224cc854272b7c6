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
		e.eventually(func() bool {
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

// Messages stream in while intake stops: each is acked or comes back. F-A06
func cancelUnderLoad(e *env) {
	src := e.h.Source(e)
	const n = 120
	s := e.open(src, transport.OpenOptions{Window: 8, MaxWindow: 8})
	var acked []string
	var load sync.WaitGroup
	e.Cleanup(func() { // also when the check ends early
		_, _ = e.attempt(e.h.Patience, func(context.Context) error { load.Wait(); return nil })
	})
	load.Go(func() {
		for _, b := range bodies(n) {
			e.publish(src, b)
		}
	})
	received := make(chan struct{})
	load.Go(func() {
		told := false
		for {
			ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
			ds, err := s.Receive(ctx, 3)
			cancel()
			if err != nil {
				e.wants("Receive under load", err, longshore.ErrCanceled)
				return
			}
			for _, d := range ds {
				if err := d.Ack(context.Background()); err != nil {
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
	e.must("publishing and receiving after Cancel", func(context.Context) error { load.Wait(); return nil })
	s.finish()
	e.holds(src, "after Cancel and Release under load", without(bodies(n), acked)...)
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

// F-G01: what nobody worked on comes back as it was.
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
			e.eventually(func() bool { return b.Buffered() > 0 })
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

func closeGivesBack(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(5)...)
	ds := s.take(3)
	ctx := ds[0].Context()
	s.shut()
	for _, d := range ds {
		if d.Owned() {
			e.Errorf("%s: still owned after Close", d.Body)
		}
		e.wants("Ack after Close", e.do("Ack", d.Ack), longshore.ErrLost, longshore.ErrClosed)
	}
	e.must("end of the delivery's context at Close", func(limit context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-limit.Done():
			return limit.Err()
		}
	})
	e.holds(src, "after Close with three unsettled", bodies(5)...)
}

func closeEndsCalls(e *env) {
	s := e.open(e.h.Source(e), transport.OpenOptions{})
	got := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background(), 1)
		got <- err
	}()
	s.shut()
	e.must("Receive that waited when Close was called", func(ctx context.Context) error {
		select {
		case err := <-got:
			e.wants("Receive that waited when Close was called", err, longshore.ErrClosed)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	e.must("second Close", s.Close)
	_, err := s.within(e.h.Patience, 1)
	e.wants("Receive after Close", err, longshore.ErrClosed)
	if s.obs.isDown() {
		e.Errorf("Observer.Down was called for our own Close: %v", s.obs.ends())
	}
}

// F-A03: what is below the batch threshold is sent by Close.
func closeSendsAccepted(e *env) {
	src := e.h.Batched(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(3)...)
	ds := s.take(3)
	s.ack(ds[:2]...)
	s.shut()
	e.holds(src, "after Close with two accepted and one open", string(ds[2].Body))
}

// The broker answers nothing: Close still comes back in time.
func closeBounded(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(3)...)
	ds := s.take(2)
	resume := e.h.Stall(e, src)
	s.ack(ds[0])
	s.closed = true
	back, _ := e.attempt(e.h.Quiet, s.Close)
	resume()
	if !back {
		e.Fatalf("Close did not return %s after its context had ended", e.grace())
	}
	if ds[1].Owned() {
		e.Errorf("%s: still owned after Close", ds[1].Body)
	}
	for _, b := range e.leftover(src) {
		if !slices.Contains(bodies(3), b) {
			e.Errorf("unknown message %q", b)
		}
	}
}

// Every answer is late: nothing else changes. A drain that only works with a
// broker that answers at once is a drain that loses.
func underLatency(e *env) {
	src := e.h.Source(e)
	e.h.Latency(e, src, e.h.Quiet/4)
	s := e.open(src, transport.OpenOptions{Window: 8, MaxWindow: 8})
	e.publish(src, bodies(8)...)
	ds := s.take(4)
	s.ack(ds[:2]...)
	s.flush()
	if e.h.Depth != nil {
		if ready, out := e.h.Depth(e, src); out >= 0 && ready+out != 6 {
			e.Errorf("Flush returned with %d of 8 messages at the broker, two were acked", ready+out)
		}
	}
	s.cancel()
	s.ack(ds[2])
	s.release()
	s.finish()
	e.h.Latency(e, src, 0)
	e.holds(src, "after three acks on a slow link", without(bodies(8), bodiesOf(ds[:3]))...)

	e.h.Latency(e, src, e.h.Patience)
	ctx, cancel := context.WithTimeout(context.Background(), e.h.Quiet)
	defer cancel()
	start := time.Now()
	if c, err := src.Open(ctx, transport.OpenOptions{}); err == nil {
		_ = c.Close(ctx)
		e.Errorf("Open succeeded although the broker's answers take %s and its context %s", e.h.Patience, e.h.Quiet)
	}
	if took := time.Since(start); took > e.h.Quiet+e.grace() {
		e.Errorf("Open returned after %s, its context ended after %s", took, e.h.Quiet)
	}
	e.h.Latency(e, src, 0)
}
