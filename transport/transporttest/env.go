package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// env is a check while it runs.
type env struct {
	testing.TB
	h       *Harness
	skipped string
}

func unique() string { return strconv.FormatUint(rand.Uint64(), 36) }

// grace is how much later than its context's end a call may return.
func (e *env) grace() time.Duration { return max(time.Second, e.h.Patience/5) }

// do calls fn with a context and fails the check if fn does not come back when
// that has ended.
func (e *env) do(what string, fn func(ctx context.Context) error) error {
	e.Helper()
	back, err := e.attempt(e.h.Patience, fn)
	if !back {
		e.Fatalf("%s did not return %s after its context had ended", what, e.grace())
	}
	return err
}

func (e *env) attempt(limit time.Duration, fn func(ctx context.Context) error) (back bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	timer := time.NewTimer(limit + e.grace())
	defer timer.Stop()
	select {
	case err := <-done:
		return true, err
	case <-timer.C:
		return false, nil
	}
}

// must is do for what has to succeed.
func (e *env) must(what string, fn func(ctx context.Context) error) {
	e.Helper()
	if err := e.do(what, fn); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// until polls for a condition.
func (e *env) until(what string, cond func() bool) {
	e.Helper()
	if !e.eventually(cond) {
		e.Fatalf("not seen within %s: %s", e.h.Patience, what)
	}
}

func (e *env) eventually(cond func() bool) bool { return e.within(e.h.Patience, cond) }

// within polls for a condition for that long.
func (e *env) within(limit time.Duration, cond func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return cond()
		}
	}
	return true
}

// publish sends messages with the bodies, each with a key of its own.
func (e *env) publish(src transport.Source, bodies ...string) {
	e.Helper()
	msgs := make([]*longshore.Message, len(bodies))
	for i, b := range bodies {
		msgs[i] = &longshore.Message{Key: []byte("key-" + b), Body: []byte(b)}
	}
	e.send(src, msgs...)
}

func (e *env) send(src transport.Source, msgs ...*longshore.Message) {
	e.Helper()
	if e.h.Publish != nil {
		e.h.Publish(e.TB, src, msgs...)
		return
	}
	p, dest := e.publisher(src)
	if p == nil {
		e.Fatal("transporttest: Harness.Publish is not set and the source does not implement transport.Outlet")
	}
	e.must("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, msgs...) })
	e.must("Publisher.Close", p.Close)
}

// publisher returns the source's own, nil if it has none.
func (e *env) publisher(src transport.Source) (p transport.Publisher, dest string) {
	e.Helper()
	out, ok := src.(transport.Outlet)
	if !ok {
		return nil, ""
	}
	e.must("Outlet.Publisher", func(ctx context.Context) (err error) {
		p, dest, err = out.Publisher(ctx)
		return err
	})
	return p, dest
}

// tooMany is more than any check sends: what repeats without an end has to be
// noticed also where it leaves no time to pass.
const tooMany = 1000

// leftover returns what the queue holds, sorted: what a new consumer gets.
// Everything is acked on the way.
func (e *env) leftover(src transport.Source) []string {
	e.Helper()
	return e.leftoverOf(src, 0)
}

// leftoverOf waits longer for so many where some may be hidden.
func (e *env) leftoverOf(src transport.Source, n int) []string {
	e.Helper()
	s := e.open(src, transport.OpenOptions{})
	marker := "marker-" + unique()
	e.publish(src, marker)
	var got []string
	seen := false
	deadline := time.Now().Add(e.h.Patience)
	var slowest time.Duration // of what came behind the first: a busy broker is not at its end yet
	for first := true; ; first = false {
		wait := max(e.h.Quiet, 3*slowest)
		switch {
		case !seen:
			wait = time.Until(deadline)
		case len(got) < n:
			wait = max(wait, e.h.Hidden)
		}
		began := time.Now()
		ds, err := s.within(wait, 10)
		if err == nil && !first {
			slowest = max(slowest, time.Since(began))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			e.Fatalf("Receive: %v", err)
		}
		if len(got) > tooMany {
			e.Fatalf("messages come again and again although they are acked: %v …", got[:5])
		}
		for _, d := range ds {
			if string(d.Body) == marker && !seen {
				seen = true
			} else {
				got = append(got, string(d.Body))
			}
			s.ack(d)
		}
	}
	if !seen {
		e.Fatalf("a message published to the queue did not arrive within %s", e.h.Patience)
	}
	s.finish()
	slices.Sort(got)
	return got
}

// holds checks what a new consumer gets.
func (e *env) holds(src transport.Source, when string, want ...string) {
	e.Helper()
	slices.Sort(want)
	if got := e.leftoverOf(src, len(want)); !slices.Equal(got, want) {
		e.Errorf("%s the queue must hold %v, it holds %v", when, want, got)
	}
}

// bodies numbers n of them.
func bodies(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%03d", i)
	}
	return all
}

func bodiesOf(ds []*longshore.Delivery) []string {
	all := make([]string, len(ds))
	for i, d := range ds {
		all[i] = string(d.Body)
	}
	return all
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
