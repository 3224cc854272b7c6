package containertest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
)

// accounts is a world: a balance for each account, and the payments that are known.
type accounts struct {
	mu      sync.Mutex
	balance map[string]int
	known   map[string]bool
}

func (a *accounts) read() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.balance)
}

func payments(idempotent bool) containertest.Subject {
	s := containertest.Subject{New: func() (longshore.Handler, func() any) {
		a := &accounts{balance: map[string]int{}, known: map[string]bool{}}
		return longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if idempotent && a.known[d.ID] {
				return nil
			}
			a.known[d.ID] = true
			a.balance[string(d.Body)]++
			return nil
		}), a.read
	}}
	for i := range 20 {
		s.Messages = append(s.Messages, &longshore.Message{ID: fmt.Sprintf("p-%d", i), Body: fmt.Append(nil, "account ", i%3)})
	}
	return s
}

func TestAtLeastOncePassesAnIdempotentHandler(t *testing.T) {
	for seed := range uint64(5) {
		containertest.AtLeastOnce(t, payments(true), seed)
	}
}

// recorder is a test that fails without failing this one.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, v ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, v...))
}

func TestAtLeastOnceFindsOutAHandlerThatIsNot(t *testing.T) {
	r := &recorder{TB: t}
	containertest.AtLeastOnce(r, payments(false), 7)
	all := strings.Join(r.errors, "\n")
	for _, fault := range []string{"messages come twice", "crash after the effect", "delivery lost while it is worked on", "seed 7"} {
		if !strings.Contains(all, fault) {
			t.Errorf("not found out: %s\n%s", fault, all)
		}
	}
}

// The last one wins: whoever needs an order must give keys.
func TestAtLeastOnceFindsOutWhoNeedsAnOrder(t *testing.T) {
	last := func(key []byte) containertest.Subject {
		s := containertest.Subject{Config: container.Config{Workers: container.Workers{Max: 1}}, New: func() (longshore.Handler, func() any) {
			var mu sync.Mutex
			var value string
			return longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				value = max(value, d.ID) // a version that is older than what is known changes nothing
				if key == nil {
					value = d.ID
				}
				return nil
			}), func() any { mu.Lock(); defer mu.Unlock(); return value }
		}}
		for i := range 20 {
			s.Messages = append(s.Messages, &longshore.Message{ID: fmt.Sprintf("v-%02d", i), Key: key})
		}
		return s
	}
	containertest.AtLeastOnce(t, last([]byte("k")), 3)
	r := &recorder{TB: t}
	containertest.AtLeastOnce(r, last(nil), 3)
	if !strings.Contains(strings.Join(r.errors, "\n"), "another order") {
		t.Errorf("not found out: %q", r.errors)
	}
}

// steps is a world with two accounts, and a handler that moves 1 from one to the other: it is
// to know its message, and to take and give by steps, between which it looks at its context.
type steps struct {
	mu          sync.Mutex
	known       map[string]bool
	taken, gave int
}

func (s *steps) knows(id string) bool { s.mu.Lock(); defer s.mu.Unlock(); return s.known[id] }

func (s *steps) do(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }

// Handlers that are wrong, each in the way that one kind of fault brings to light.
func TestAtLeastOnceFindsEachKindOfMistake(t *testing.T) {
	type handle func(ctx context.Context, d *longshore.Delivery, w *steps) error
	right := func(ctx context.Context, d *longshore.Delivery, w *steps) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.do(func() {
			if !w.known[d.ID] {
				w.known[d.ID] = true
				w.taken++
				w.gave++
			}
		})
		return ctx.Err()
	}
	for name, tc := range map[string]struct {
		h     handle
		found string
	}{
		"right": {right, ""},
		"does it each time": {func(_ context.Context, _ *longshore.Delivery, w *steps) error {
			w.do(func() { w.taken++; w.gave++ })
			return nil
		}, "messages come twice"},
		"takes what comes again for done": {func(ctx context.Context, d *longshore.Delivery, w *steps) error {
			if d.Attempt > 1 {
				return nil
			}
			return right(ctx, d, w)
		}, "crash before the effect"},
		"remembers before it does": {func(ctx context.Context, d *longshore.Delivery, w *steps) error {
			if w.knows(d.ID) {
				return nil
			}
			w.do(func() { w.known[d.ID] = true })
			if err := ctx.Err(); err != nil {
				return err
			}
			w.do(func() { w.taken++; w.gave++ })
			return nil
		}, "delivery lost while it is worked on, when it looked at its context for the first time"},
		"does it by halves": {func(ctx context.Context, d *longshore.Delivery, w *steps) error {
			if ctx.Err() != nil || w.knows(d.ID) {
				return ctx.Err()
			}
			w.do(func() { w.taken++ })
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			w.do(func() { w.gave++; w.known[d.ID] = true })
			return nil
		}, "delivery lost while it is worked on, when it looked at its context for the second time"},
		"asks first whether it is done": {func(ctx context.Context, d *longshore.Delivery, w *steps) error {
			if w.knows(d.ID) {
				return nil
			}
			_ = ctx.Err() // as a call does that has it and succeeds all the same
			w.do(func() { w.known[d.ID] = true; w.taken++; w.gave++ })
			return nil
		}, "delivery given to another while it is worked on, when it looked at its context for the first time"},
		"holds a lock all the time": {func(ctx context.Context, d *longshore.Delivery, w *steps) (err error) {
			w.do(func() {
				if err = ctx.Err(); err == nil && !w.known[d.ID] {
					w.known[d.ID] = true
					w.taken++
					w.gave++
				}
			})
			return err
		}, ""},
		"takes the end of its context for success": {func(ctx context.Context, d *longshore.Delivery, w *steps) error {
			if ctx.Err() == nil {
				return right(ctx, d, w)
			}
			return nil
		}, "stop in the middle, before its first step"},
	} {
		t.Run(name, func(t *testing.T) {
			s := containertest.Subject{New: func() (longshore.Handler, func() any) {
				w := &steps{known: map[string]bool{}}
				return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error { return tc.h(ctx, d, w) }),
					func() any { w.mu.Lock(); defer w.mu.Unlock(); return [2]int{w.taken, w.gave} }
			}, Messages: []*longshore.Message{{}, {}, {}, {}}}
			r := &recorder{TB: t}
			containertest.AtLeastOnce(r, s, 11)
			all := strings.Join(r.errors, "\n")
			if tc.found == "" && all != "" || !strings.Contains(all, tc.found) {
				t.Errorf("wanted %q, got\n%s", tc.found, all)
			}
		})
	}
}
