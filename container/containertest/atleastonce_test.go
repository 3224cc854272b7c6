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
