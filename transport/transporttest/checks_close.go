package transporttest

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

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
