package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func openChecks() []check {
	return []check{
		{name: "open-missing", needs: needs("Missing"), run: opensMissing},
		{name: "open-auth", needs: needs("BadAuth"), run: opensUnauthorized},
		{name: "open-context", run: openContextBoundsOpeningOnly},
		{name: "open-twice", run: opensTwice},
		{name: "reopen", run: reopens},
		{name: "base-context", run: usesBaseContext},
		{name: "lease-kept", needs: needs("Leased"), run: keepsLease},
		{name: "goroutines", run: leavesNoGoroutines, alone: true},
	}
}

// refused checks that Open fails at once and with the code.
func (e *env) refused(src transport.Source, code longshore.Code) {
	e.Helper()
	var c transport.Consumer
	err := e.do("Open", func(ctx context.Context) (err error) {
		c, err = src.Open(ctx, transport.OpenOptions{})
		return err
	})
	if c != nil {
		e.must("Close", c.Close)
		e.Errorf("Open returned a consumer")
	}
	e.wants("Open", err, code)
}

func opensMissing(e *env)      { e.refused(e.h.Missing(e), longshore.CodeNotFound) }
func opensUnauthorized(e *env) { e.refused(e.h.BadAuth(e), longshore.CodeAuth) }

// The context of Open bounds the opening, not the consumer's life.
func openContextBoundsOpeningOnly(e *env) {
	src := e.h.Source(e)
	opening, cancel := context.WithTimeout(context.Background(), e.h.Patience)
	defer cancel()
	c, err := src.Open(opening, transport.OpenOptions{}) // no observer, no base: the zero options work
	if err != nil {
		e.Fatalf("Open: %v", err)
	}
	s := &sub{Consumer: c, e: e, src: src, obs: newWatcher()}
	defer s.shut()
	cancel()
	_, err = s.within(e.h.Quiet, 1)
	e.wants("Receive when the context of Open has ended", err, context.DeadlineExceeded)
	e.publish(src, "a")
	d := s.take(1)[0]
	if d.Context().Err() != nil {
		e.Errorf("the delivery's context ended with Open's")
	}
	s.ack(d)
}

// Two consumers of one source share its messages.
func opensTwice(e *env) {
	src := e.h.Source(e)
	one := e.open(src, transport.OpenOptions{Window: 2, MaxWindow: 2})
	two := e.open(src, transport.OpenOptions{Window: 2, MaxWindow: 2})
	e.publish(src, bodies(12)...)
	var got []string
	deadline := time.Now().Add(e.h.Patience)
	for len(got) < 12 && time.Now().Before(deadline) {
		for _, s := range []*sub{one, two} {
			ds, err := s.within(e.h.Quiet/4, 3)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.Fatalf("Receive: %v", err)
			}
			got = append(got, bodiesOf(ds)...)
			s.ack(ds...)
		}
	}
	if !slices.Equal(sorted(got), bodies(12)) {
		e.Errorf("two consumers received %v, published were 12 different ones", sorted(got))
	}
	one.finish()
	two.finish()
	e.holds(src, "after two consumers acked all")
}

func reopens(e *env) {
	src := e.h.Source(e)
	for _, b := range bodies(3) {
		s := e.open(src, transport.OpenOptions{})
		e.publish(src, b)
		d := s.take(1)[0]
		if string(d.Body) != b {
			e.Errorf("received %q, want %q", d.Body, b)
		}
		s.ack(d)
		s.finish()
	}
}

type baseKey struct{}

// A drain that runs out of time reaches the handlers through the base context,
// and what they have done can still be settled.
func usesBaseContext(e *env) {
	src := e.h.Source(e)
	base, stop := context.WithCancelCause(context.WithValue(context.Background(), baseKey{}, "base"))
	defer stop(nil)
	s := e.open(src, transport.OpenOptions{Base: base})
	e.publish(src, "a")
	d := s.take(1)[0]
	ctx := d.Context()
	if ctx.Value(baseKey{}) != "base" {
		e.Errorf("the delivery's context does not descend from OpenOptions.Base")
	}
	stop(longshore.ErrStopping)
	if ctx.Err() == nil {
		e.Errorf("the delivery's context lives although the base has ended")
	}
	e.wants("cause of the delivery's context", context.Cause(ctx), longshore.ErrStopping)
	s.ack(d)
	s.finish()
	e.holds(src, "after an ack behind the end of the base context")
}

// No call of Receive waits: the lease is kept anyway.
func keepsLease(e *env) {
	src, lease := e.h.Leased(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "slow", "next")
	d := s.take(1)[0]
	gone := time.NewTimer(3 * lease)
	defer gone.Stop()
	<-gone.C
	if !d.Owned() || s.obs.losses(d) > 0 {
		e.Errorf("lost after three leases of %s although the transport keeps them", lease)
	}
	s.ack(d)
	s.ack(s.take(1)...)
	s.finish()
	e.holds(src, "after a handler that outlived its lease")
}

func leavesNoGoroutines(e *env) {
	src := e.h.Source(e)
	e.cycle(src) // what the harness itself starts once is there after this
	before := goroutines()
	e.cycle(src)
	var left map[string]string
	gone := e.eventually(func() bool {
		left = goroutines()
		for id := range before {
			delete(left, id)
		}
		return len(left) == 0
	})
	if gone {
		return
	}
	for _, stack := range left {
		e.Errorf("this goroutine outlives Close:\n%s", stack)
	}
}

func (e *env) cycle(src transport.Source) {
	e.Helper()
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(4)...)
	ds := s.take(4)
	s.ack(ds[:2]...)
	s.cancel()
	s.finish()
}

// goroutines returns the stacks of all that are neither this one nor the
// testing package's, by number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		var id string
		if _, err := fmt.Sscanf(stack, "goroutine %s ", &id); err != nil || i == 0 || strings.Contains(stack, "testing.(*") {
			continue
		}
		all[id] = stack
	}
	return all
}
