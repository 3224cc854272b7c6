package extend_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/examples/extend/perbacklog"
	"github.com/longshore-go/longshore/examples/extend/queue"
	"github.com/longshore-go/longshore/examples/extend/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

func message(i int, tenant string) *longshore.Message {
	return &longshore.Message{ID: fmt.Sprint(i), Headers: longshore.Headers{{Name: "tenant", Value: tenant}}}
}

// All three in one container: it grows by the foreign policy, the foreign middleware
// sorts out and counts, the foreign transport settles.
func TestContainerOfForeignParts(t *testing.T) {
	q := queue.New()
	mw := tenants.New("tenant", "a", "b")
	hold := make(chan struct{})
	c, err := container.New(q, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}), container.Config{
		Workers: container.Workers{Min: 1, Max: 8}, Lookahead: 16, Autoscale: perbacklog.Policy{Messages: 2}, Logger: zap.NewNop(),
		Middleware: []longshore.Middleware{mw}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		q.Put(message(i, []string{"a", "b", "x"}[i%3]))
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it grows", func() bool { st := c.Stats(); return st.Target > 4 && st.Scaling.Reason == "backlog" })
	close(hold)
	eventually(t, "all are done", func() bool { st := c.Stats(); return st.Acked == 40 && st.Rejected+st.Discarded == 20 })
	eventually(t, "it shrinks", func() bool { return c.Stats().Scaling.Downs > 0 })
	if mw.Done("a") != 20 || mw.Done("b") != 20 || mw.Done("x") != 0 {
		t.Errorf("a %d, b %d, x %d", mw.Done("a"), mw.Done("b"), mw.Done("x"))
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestBatchesOfForeignParts(t *testing.T) {
	q := queue.New()
	mw := tenants.New("tenant", "a")
	c, err := container.NewBatch(q, func(_ context.Context, ds []*longshore.Delivery) error {
		for _, d := range ds {
			if d.Headers.String("tenant") != "a" {
				t.Errorf("a message of tenant %q", d.Headers.String("tenant"))
			}
		}
		return nil
	}, container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{mw}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard},
		Batch: container.Batch{Size: 4, Linger: 10 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		q.Put(message(i, []string{"a", "x"}[i%2]))
	}
	eventually(t, "all are done", func() bool { st := c.Stats(); return st.Acked == 10 && st.Rejected+st.Discarded == 10 })
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMistakesAreFound(t *testing.T) {
	nothing := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
	if _, err := container.New(queue.New(), nothing, container.Config{Autoscale: perbacklog.Policy{}}); err == nil || !strings.Contains(err.Error(), "perbacklog") {
		t.Errorf("a policy without its setting: %v", err)
	}
	c, err := container.New(queue.New(), nothing, container.Config{Middleware: []longshore.Middleware{tenants.New("tenant")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "tenants") {
		t.Errorf("a middleware that refuses: %v", err)
	}
}

func TestPolicyFollowsTheBacklog(t *testing.T) {
	s := perbacklog.Policy{Messages: 10, Patience: 2}.New()
	for i, step := range []struct {
		in   autoscale.Sample
		want int
	}{
		{autoscale.Sample{Workers: 1, Backlog: 95, BacklogAge: time.Second}, 10},
		{autoscale.Sample{Workers: 10, Backlog: 9999, BacklogAge: -1, Queued: 5}, 10}, // unknown: the first that wants less
		{autoscale.Sample{Workers: 10, Queued: 5, BacklogAge: -1}, 10},
		{autoscale.Sample{Workers: 10, Queued: 5, BacklogAge: -1}, 9},
		{autoscale.Sample{Workers: 9, Paused: true}, 9},
		{autoscale.Sample{Workers: 9, Busy: 9, BacklogAge: -1}, 9},
	} {
		if got := s.Next(step.in); got.Target != step.want {
			t.Errorf("step %d: %+v", i, got)
		}
	}
}
