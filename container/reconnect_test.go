package container_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// An operator who has cured the cause does not wait for the end of the pause.
func TestReconnectEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(noop), container.Config{})
		if err := c.Reconnect(longshore.Intervention{}); !errors.Is(err, longshore.CodeState) {
			t.Fatalf("while it runs: %v", err)
		}
		b.FailOpen("q", -1, failure(longshore.CodeAuth))
		b.Drop("q")
		wait(3 * time.Minute) // the pauses have grown
		st := c.Stats()
		if left := time.Until(st.NextAttempt); st.State != container.StateRecovering || left < 0 {
			t.Fatalf("%v, next attempt in %v", st.State, left)
		}
		b.FailOpen("q", 0, nil)
		if c.State() != container.StateRecovering {
			t.Fatal("it has not waited")
		}
		events, end := c.Events(10)
		defer end()
		if err := c.Reconnect(longshore.Intervention{By: "anna", Reason: "password set"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := c.Stats(); st.State != container.StateRunning || !st.NextAttempt.IsZero() {
			t.Errorf("%v, next attempt %v", st.State, st.NextAttempt)
		}
		if e := <-events; e.Kind != container.EventNotice || e.Text != "resubscribing now, as requested by anna (password set)" {
			t.Errorf("%+v", e)
		}
		stop(t, c)
		if err := c.Reconnect(longshore.Intervention{}); !errors.Is(err, longshore.CodeState) {
			t.Errorf("after the stop: %v", err)
		}
	})
}
