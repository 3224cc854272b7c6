package container_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N15: what the broker would give up at its next return is dead-lettered here with that
// reason, before a handler that may not come back; where there is no place for it, a
// handler sees it.
func TestMessageAtTheBrokersLimitIsDeadLetteredFirst(t *testing.T) {
	for name, like := range map[string]struct {
		dead    container.DeadLetter
		queue   memory.QueueConfig
		place   string
		handled int64
	}{
		"to":      {dead: container.DeadLetter{To: "dead"}, place: "dead"},
		"native":  {queue: memory.QueueConfig{DeadLetter: "dlx"}, place: "dlx"},
		"keep":    {dead: container.DeadLetter{Policy: container.DeadLetterKeep}, handled: 1},
		"discard": {dead: container.DeadLetter{Policy: container.DeadLetterDiscard}, handled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				like.queue.CountsReturns, like.queue.DeliveryLimit = true, 4
				src := b.Queue("q", like.queue)
				send(t, b, "q", &longshore.Message{ID: "m"})
				for range 3 {
					hold(t, src)
				}
				var runs atomic.Int64
				c := start(t, src, handle(func(*longshore.Delivery) error { runs.Add(1); return nil }), container.Config{DeadLetter: like.dead})
				wait(time.Minute)
				stop(t, c)
				if n := runs.Load(); n != like.handled {
					t.Errorf("the handler ran %d times, want %d", n, like.handled)
				}
				if like.place == "" {
					return
				}
				ds := browse(t, b, like.place)
				if len(ds) != 1 {
					t.Fatalf("%d in %s", len(ds), like.place)
				}
				if reason := ds[0].Headers.String(container.HeaderDeadReason); like.place == "dead" && reason != string(longshore.CodeReturned) {
					t.Errorf("the reason is %q", reason)
				}
			})
		})
	}
}

// hold takes a message and ends its consumer with it.
func hold(t *testing.T, src transport.Source) {
	t.Helper()
	c, err := src.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
