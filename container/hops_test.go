package container_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N07: what two containers send each other as a dead letter comes to rest, with one event.
func TestDeadLettersThatGoRoundComeToRest(t *testing.T) {
	for _, limit := range []int{0, 1, 5} {
		for _, stopped := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				send(t, b, "w", &longshore.Message{ID: "m", Body: []byte("x")})
				var heard []<-chan container.Event
				make1 := func(from, to string) *container.ListenerContainer {
					c, err := container.New(b.Queue(from, memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return errors.New("never") }),
						container.Config{Name: from, Redelivery: always, DeadLetter: container.DeadLetter{To: to, MaxHops: limit}})
					if err != nil {
						t.Fatal(err)
					}
					events, end := c.Events(1000)
					t.Cleanup(end)
					if err := c.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					heard = append(heard, events)
					return c
				}
				cs := []*container.ListenerContainer{make1("w", "d"), make1("d", "w")}
				wait(20 * time.Minute)
				told, moved := 0, 0
				for _, events := range heard {
					for len(events) > 0 {
						switch e := <-events; {
						case e.Kind == container.EventDeadLetterFailed && errors.Is(e.Err, longshore.CodeHops):
							told++
						case e.Kind == container.EventDeadLettered:
							moved++
						}
					}
				}
				want := limit
				if want == 0 {
					want = hops.Limit
				}
				if stopped {
					for _, c := range cs {
						stop(t, c)
					}
				}
				if told != 1 || moved != want {
					t.Errorf("limit %d: moved %d times, told %d times", limit, moved, told)
				}
				if !stopped {
					for _, c := range cs {
						stop(t, c)
					}
				}
				if n := len(browse(t, b, "w")) + len(browse(t, b, "d")); n != 1 {
					t.Errorf("limit %d: %d messages are left, want the one", limit, n)
				}
			})
		}
	}
}

// F-N07: the same by the broker's own dead-lettering cannot be told on memory, whose broker
// notes no deaths; a header says the same.
func TestNativeDeadLetterStopsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		death := longshore.Headers{{Name: "queue", Value: "w"}, {Name: "reason", Value: "rejected"}, {Name: "count", Value: int64(8)}}
		send(t, b, "w", &longshore.Message{ID: "m", Headers: longshore.Headers{{Name: "x-death", Value: []any{death}}}})
		c := start(t, b.Queue("w", memory.QueueConfig{DeadLetter: "d"}), handle(func(*longshore.Delivery) error { return errors.New("never") }),
			container.Config{Redelivery: always, DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}})
		wait(time.Hour)
		stop(t, c)
		if w, d := len(browse(t, b, "w")), len(browse(t, b, "d")); w != 1 || d != 0 {
			t.Errorf("%d in w, %d in d", w, d)
		}
	})
}

// F-N07: what shows a cycle is refused before anything starts.
func TestCyclesThatShowAreRefused(t *testing.T) {
	b := memory.New(memory.Config{})
	made := func(from, to string) *container.ListenerContainer {
		c, err := container.New(b.Queue(from, memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }),
			container.Config{Name: "c-" + from, DeadLetter: container.DeadLetter{To: to}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := container.DeadLetterCycle(made("w", "d"), made("d", "e"), made("x", "w"), made("e", "dead")); err != nil {
		t.Errorf("a chain: %v", err)
	}
	err := container.DeadLetterCycle(made("w", "d"), made("x", "w"), made("d", "e"), made("e", "w"))
	if err == nil || !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "c-w") || strings.Contains(err.Error(), "c-x") {
		t.Errorf("a cycle of three: %v", err)
	}
	_, err = container.New(b.Queue("w", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }),
		container.Config{DeadLetter: container.DeadLetter{To: "w"}})
	if err == nil || !strings.Contains(err.Error(), "DeadLetter.To") {
		t.Errorf("its own source: %v", err)
	}
}
