package container_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// narrow is a dead-letter destination that takes only what fits.
type narrow struct {
	mu    sync.Mutex
	fits  func(m *longshore.Message) bool
	taken []longshore.Message
}

func (n *narrow) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range msgs {
		if !n.fits(m) {
			return &longshore.Error{Code: longshore.CodeTooLarge, Op: "publish", Err: errors.New("9 bytes; it takes 8")}
		}
		n.taken = append(n.taken, *m)
	}
	return nil
}

func (n *narrow) Close(context.Context) error { return nil }

// F-N17: what a dead-letter destination refuses for good is in the health, in why and an event,
// and goes when the place takes it.
func TestWhatCannotBeMovedIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "large", "small")
		dead := &narrow{fits: func(m *longshore.Message) bool { return string(m.Body) != "large" }}
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
			return longshore.Reject(errors.New("bad"))
		}), container.Config{DeadLetter: container.DeadLetter{To: "dead", Via: dead}})
		events, stop := c.Events(100)
		defer stop()
		wait(10 * time.Minute)
		st, why := c.Stats(), c.Bottleneck()
		if st.Ready || !strings.Contains(st.Reason, `1 message cannot be moved to its dead-letter destination "dead"`) || !strings.Contains(st.Reason, "9 bytes; it takes 8") {
			t.Errorf("ready %t: %s", st.Ready, st.Reason)
		}
		if why.By != container.ByDeadLetter || !strings.HasPrefix(why.Text, st.Reason) {
			t.Errorf("why: %+v", why)
		}
		told := false
		for done := false; !done; {
			select {
			case e := <-events:
				told = told || e.Kind == container.EventDeadLetterFailed && strings.Contains(e.Text, "raise the destination's limit")
			default:
				done = true
			}
		}
		if !told {
			t.Error("no event says that it stays")
		}
		dead.mu.Lock()
		if len(dead.taken) != 1 {
			t.Errorf("%d were moved, want the small one", len(dead.taken))
		}
		dead.fits = func(*longshore.Message) bool { return true }
		dead.mu.Unlock()
		wait(10 * time.Minute)
		if st := c.Stats(); !st.Ready || st.Reason != "" {
			t.Errorf("ready %t: %s", st.Ready, st.Reason)
		}
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// F-N17: the diagnostics are trimmed before a message stays: first the long ones.
func TestDiagnosticsAreTrimmedFirst(t *testing.T) {
	for _, c := range []struct {
		most int // headers
		want []string
	}{
		{100, []string{container.HeaderDeadReason, container.HeaderDeadAttempts, container.HeaderDeadError}},
		{4, []string{container.HeaderDeadReason, container.HeaderDeadAttempts}},
		{1, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "1")
			dead := &narrow{fits: func(m *longshore.Message) bool { return len(m.Headers) <= c.most }}
			ctr := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
				return longshore.Reject(errors.New("bad"))
			}), container.Config{DeadLetter: container.DeadLetter{To: "dead", Via: dead}})
			wait(time.Second)
			if err := ctr.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			if len(dead.taken) != 1 {
				t.Fatalf("%d were moved", len(dead.taken))
			}
			for _, name := range []string{container.HeaderDeadReason, container.HeaderDeadAttempts, container.HeaderDeadError} {
				want := false
				for _, w := range c.want {
					want = want || w == name
				}
				if dead.taken[0].Headers.Has(name) != want {
					t.Errorf("at most %d headers: %s is there: %t", c.most, name, !want)
				}
			}
		})
	}
}
