package notify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder notes the order of calls; its lock is one that the poster holds too.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, s)
}

func (r *recorder) Lost([]*longshore.Delivery, error) { r.note("lost") }
func (r *recorder) SettleFailed(*longshore.Delivery, longshore.Settlement, error) {
	r.note("settle failed")
}
func (r *recorder) Down(error)              { r.note("down") }
func (r *recorder) Event(e transport.Event) { r.note(e.Text) }

// Reports made under a lock that the observer needs arrive, and in their order.
func TestReportsArriveInOrderOutsideOfTheCallersLock(t *testing.T) {
	r := &recorder{}
	n := New(r)
	r.mu.Lock()
	n.Event(transport.Event{Text: "first"})
	n.Lost([]*longshore.Delivery{{}}, longshore.ErrLost)
	n.SettleFailed(nil, longshore.Settlement{}, nil)
	n.Lost(nil, longshore.ErrLost) // nothing to report
	n.Down(longshore.ErrLost)
	r.mu.Unlock()
	if err := n.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first", "lost", "settle failed", "down"}; !slices.Equal(r.calls, want) {
		t.Errorf("%v, want %v", r.calls, want)
	}
}

// Each of many concurrent posters sees its own reports in order.
func TestEachPostersOrderHolds(t *testing.T) {
	n := New(&recorder{})
	const posters, each = 8, 200
	var got [posters][]int // written by the notifier's goroutine alone
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range each {
				n.Post(func() { got[p] = append(got[p], i) })
			}
		})
	}
	wg.Wait()
	if err := n.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p := range posters {
		if len(got[p]) != each || !slices.IsSorted(got[p]) {
			t.Errorf("poster %d: %d calls, sorted %v", p, len(got[p]), slices.IsSorted(got[p]))
		}
	}
}

// Wait ends with its context while an observer blocks, and without one is free.
func TestWaitObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(nil)
		n.Down(longshore.ErrLost) // dropped
		if err := n.Wait(t.Context()); err != nil || n.Observed() {
			t.Errorf("without an observer: %v", err)
		}
		release := make(chan struct{})
		n.Post(func() { <-release })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait returned %v", err)
		}
		close(release)
		if err := n.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
