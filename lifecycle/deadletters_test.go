package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N07: containers made in code whose dead letters go round are refused before anything
// starts, and so is one that joins later and closes the circle.
func TestDeadLettersThatGoRoundAreRefused(t *testing.T) {
	b := memory.New(memory.Config{})
	between := func(from, to string) lifecycle.Component {
		c, err := container.New(b.Queue(from, memory.QueueConfig{}),
			longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Name: "c-" + from, DeadLetter: container.DeadLetter{To: to}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(err error) bool {
		return errors.Is(err, longshore.CodeConfig) && strings.Contains(err.Error(), "c-w") && strings.Contains(err.Error(), "c-d") && !strings.Contains(err.Error(), "c-x")
	}
	if _, err := lifecycle.New(lifecycle.Config{}, between("x", "w"), between("w", "d"), between("d", "w")); !refused(err) {
		t.Errorf("New: %v", err)
	}
	m, err := lifecycle.New(lifecycle.Config{}, between("x", "w"), between("w", "d"))
	if err != nil {
		t.Fatalf("a chain: %v", err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(t.Context(), between("d", "w")); !refused(err) {
		t.Errorf("Add: %v", err)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
