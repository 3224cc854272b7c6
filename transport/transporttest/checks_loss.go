package transporttest

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func lossChecks() []check {
	return []check{
		{name: "loss-observed", needs: needs("Drop"), run: lossIsObserved},
		{name: "loss-contexts", needs: needs("Drop"), run: lossEndsContexts},
		{name: "loss-receive", needs: needs("Drop"), run: lossEndsReceive},
		{name: "loss-down", needs: needs("Drop"), run: lossIsDownOnce},
		{name: "settle-after-loss", needs: needs("Drop"), run: settlesNothingAfterLoss},
		{name: "loss-redelivers", needs: needs("Drop"), run: lossRedelivers},
		{name: "stale-delivery", run: staleDeliverySettlesNothing},
		{name: "taken-back", needs: needs("TakeBack"), run: takenBack},
		{name: "duplicate", needs: needs("Duplicate"), run: duplicateStartsNothing},
		{name: "close-after-loss", needs: needs("Drop"), run: closesAfterLoss},
	}
}

// broken opens a fresh queue, takes n of more messages and cuts the connection.
func (e *env) broken(n int) (*sub, []*longshore.Delivery) {
	e.Helper()
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(n+2)...)
	ds := s.take(n)
	e.h.Drop(e, src)
	return s, ds
}

func lossIsObserved(e *env) {
	s, ds := e.broken(3)
	for _, d := range ds {
		e.until("Observer.Lost for each delivery", func() bool { return s.obs.losses(d) > 0 })
		if n := s.obs.losses(d); n != 1 {
			e.Errorf("%s was reported lost %d times", d.Body, n)
		}
		if d.Owned() {
			e.Errorf("%s is owned although it was reported lost", d.Body)
		}
	}
	if !errors.Is(s.obs.cause, longshore.ErrLost) {
		e.Errorf("the cause of the loss does not wrap ErrLost: %v", s.obs.cause)
	}
}

// F-B03: a handler hears of the loss without settling.
func lossEndsContexts(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "a")
	ctx := s.take(1)[0].Context()
	done := ctx.Done()
	e.h.Drop(e, src)
	e.must("end of a handler's context when its delivery is lost", func(limit context.Context) error {
		select {
		case <-done:
			e.wants("cause of the handler's context", context.Cause(ctx), longshore.ErrLost)
			return nil
		case <-limit.Done():
			return limit.Err()
		}
	})
}

func lossEndsReceive(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	got := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.Background(), 1)
		got <- err
	}()
	e.h.Drop(e, src)
	e.must("Receive that waited when the connection was cut", func(ctx context.Context) error {
		select {
		case err := <-got:
			e.typed("Receive that waited when the connection was cut", err)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	_, err := s.within(e.h.Patience, 1)
	e.typed("the next Receive", err)
}

// typed checks that an error says why a consumer is at its end.
func (e *env) typed(what string, err error) {
	e.Helper()
	var typed *longshore.Error
	if !errors.As(err, &typed) || typed.Code == "" {
		e.Errorf("%s: got %v, want an *longshore.Error", what, err)
	}
	if errors.Is(err, longshore.ErrClosed) || errors.Is(err, longshore.ErrCanceled) {
		e.Errorf("%s: %v must be kept for our own Close and Cancel", what, err)
	}
}

// No call of Receive waits, no settlement comes: the end is reported anyway, once.
func lossIsDownOnce(e *env) {
	s, _ := e.broken(1)
	e.until("Observer.Down, without a call of Receive", s.obs.isDown)
	e.typed("the error of Observer.Down", s.obs.ends()[0])
	for range 3 {
		_, err := s.within(e.h.Patience, 1)
		e.typed("Receive", err)
	}
	e.do("Flush", s.Flush) //nolint:errcheck // an error is as good as none here
	s.shut()
	if n := len(s.obs.ends()); n != 1 {
		e.Errorf("Observer.Down was called %d times: %v", n, s.obs.ends())
	}
}

func settlesNothingAfterLoss(e *env) {
	s, ds := e.broken(4)
	e.until("loss of the deliveries", func() bool { return s.obs.losses(ds[3]) > 0 })
	e.wants("Ack after the loss", e.do("Ack", ds[0].Ack), longshore.ErrLost)
	e.wants("Nack after the loss", e.do("Nack", func(ctx context.Context) error { return ds[1].Nack(ctx, 0) }), longshore.ErrLost)
	e.wants("Reject after the loss", e.do("Reject", func(ctx context.Context) error { return ds[2].Reject(ctx, nil) }), longshore.ErrLost)
	e.wants("Extend after the loss", e.do("Extend", func(ctx context.Context) error { return ds[3].Extend(ctx, time.Minute) }), longshore.ErrLost)
	s.shut()
	e.holds(s.src, "after a loss, with late verbs", bodies(6)...)
}

func lossRedelivers(e *env) {
	s, ds := e.broken(3)
	e.until("Observer.Down", s.obs.isDown)
	s.shut()
	next := e.open(s.src, transport.OpenOptions{})
	again := next.take(5)
	for _, d := range again {
		mine := false
		for _, old := range ds {
			mine = mine || string(old.Body) == string(d.Body)
		}
		if mine && !d.Origin.Redelivered && !next.caps.HeadOfLineBlocking {
			e.Errorf("%s: Origin.Redelivered is false after it was lost", d.Body)
		}
		if !mine && d.Attempt != 1 && !next.caps.CountsReturns && !e.h.LossCounts && next.caps.Attempts {
			e.Errorf("%s: attempt %d although Receive never handed it out", d.Body, d.Attempt)
		}
	}
	next.ack(again...)
	next.finish()
	e.holds(s.src, "after all that was lost was acked")
}

// F-B04: tags begin at 1 again on each connection; a late ack of an earlier one
// must not settle the delivery that has the same tag now.
func staleDeliverySettlesNothing(e *env) {
	src := e.h.Source(e)
	first := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(4)...)
	old := first.take(4)
	if e.h.Drop != nil {
		e.h.Drop(e, src)
		e.until("Observer.Down", first.obs.isDown)
	}
	first.shut()
	second := e.open(src, transport.OpenOptions{})
	now := second.take(4)
	for _, d := range old {
		e.wants("Ack of a delivery of an earlier consumer", e.do("Ack", d.Ack), longshore.ErrLost, longshore.ErrClosed)
	}
	for _, d := range now {
		if !d.Owned() {
			e.Errorf("%s: no longer owned after a late ack on an earlier consumer", d.Body)
		}
	}
	second.flush()
	second.shut()
	e.holds(src, "after acks on an earlier consumer only", bodies(4)...)
}

// The broker takes deliveries back, the consumer lives on.
func takenBack(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "a", "b")
	ds := s.take(2)
	ctx := ds[0].Context()
	e.h.TakeBack(e, src)
	for _, d := range ds {
		e.until("Observer.Lost for each delivery", func() bool { return s.obs.losses(d) > 0 })
		e.wants("Ack of what was taken back", e.do("Ack", d.Ack), longshore.ErrLost)
	}
	e.wants("cause of the handler's context", context.Cause(ctx), longshore.ErrLost)
	again := s.take(2)
	s.ack(again...)
	s.finish()
	if s.obs.isDown() {
		e.Errorf("the consumer is down after a loss of deliveries: %v", s.obs.ends())
	}
	e.holds(src, "after what was taken back was acked")
}

// F-N09: a broker that hands out again what is held here takes nothing away: the copy is
// not handed out, and the delivery goes on and settles.
func duplicateStartsNothing(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "a", "b")
	ds := s.take(2)
	e.h.Duplicate(e, src)
	if more, _ := s.drain(); len(more) > 0 {
		e.Errorf("%d copies of held messages were handed out", len(more))
	}
	for _, d := range ds {
		if s.obs.losses(d) > 0 || d.Context().Err() != nil || !d.Owned() {
			e.Fatalf("%s was lost to its own copy", d.Body)
		}
		s.ack(d)
	}
	s.finish()
	e.holds(src, "after copies came of what was acked then")
}

func closesAfterLoss(e *env) {
	s, _ := e.broken(1)
	e.until("Observer.Down", s.obs.isDown)
	if back, _ := e.attempt(e.h.Patience, s.Cancel); !back {
		e.Fatal("Cancel hangs on a consumer that is down")
	}
	if back, _ := e.attempt(e.h.Patience, s.Release); !back {
		e.Fatal("Release hangs on a consumer that is down")
	}
	s.shut()
	e.must("second Close", s.Close)
	e.holds(s.src, "after a loss", bodies(3)...)
}
