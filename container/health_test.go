package container_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-L04: live and ready for each container, with a healthy one beside it.
func TestHealthTellsTheTruthPerContainer(t *testing.T) {
	block := make(chan struct{})
	stuck := container.Config{Workers: container.Workers{Min: 2, Max: 2}, Stuck: container.Stuck{After: time.Minute}, Order: container.ByPartition}
	hang := func(d *longshore.Delivery) error {
		if d.ID == "hang" {
			<-block
		}
		return nil
	}
	partition := func(b *memory.Broker, t *testing.T, id string, keys ...string) {
		for _, k := range keys {
			send(t, b, "q", &longshore.Message{ID: id, Key: []byte(k)})
		}
	}
	for name, tc := range map[string]struct {
		cfg         container.Config
		do          func(t *testing.T, b *memory.Broker, c *container.ListenerContainer)
		live, ready bool
		reason      string
	}{
		"broker away": {do: func(_ *testing.T, b *memory.Broker, _ *container.ListenerContainer) {
			b.FailOpen("q", 1000, &longshore.Error{Code: longshore.CodeUnreachable, Op: "open q"})
			b.Drop("q")
		}, live: true, reason: "recovering: open q (unreachable)"},
		"queue missing": {do: func(_ *testing.T, b *memory.Broker, _ *container.ListenerContainer) {
			b.FailOpen("q", 1000, &longshore.Error{Code: longshore.CodeNotFound, Op: "open q"})
			b.Delete("q")
		}, live: true, reason: "recovering: open q (not-found)"},
		"all handlers stuck": {cfg: stuck, do: func(t *testing.T, b *memory.Broker, _ *container.ListenerContainer) {
			partition(b, t, "hang", "a", "b", "c", "d", "e")
		}, live: true, reason: "all 2 handlers are stuck"},
		"one partition stuck": {cfg: stuck, do: func(t *testing.T, b *memory.Broker, _ *container.ListenerContainer) {
			partition(b, t, "hang", "a")
		}, live: true, ready: true, reason: "stuck for 1"},
		"paused": {do: func(_ *testing.T, _ *memory.Broker, c *container.ListenerContainer) { c.Pause() }, live: true, ready: true, reason: "paused"},
		"idle":   {do: func(*testing.T, *memory.Broker, *container.ListenerContainer) { wait(time.Hour) }, live: true, ready: true},
		"stopped": {do: func(t *testing.T, _ *memory.Broker, c *container.ListenerContainer) { stop(t, c) },
			live: true, reason: "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block = make(chan struct{})
				b := memory.New(memory.Config{})
				c := start(t, b.Queue("q", memory.QueueConfig{Partitions: 8}), handle(hang), tc.cfg)
				other := start(t, b.Queue("other", memory.QueueConfig{}), handle(hang), container.Config{})
				tc.do(t, b, c)
				wait(90 * time.Second)
				st := c.Stats()
				if st.Live != tc.live || st.Ready != tc.ready || (st.Reason == "") != (tc.reason == "") || !strings.Contains(st.Reason, tc.reason) {
					t.Errorf("live %v, ready %v, %q; want %v, %v, %q", st.Live, st.Ready, st.Reason, tc.live, tc.ready, tc.reason)
				}
				if name == "one partition stuck" && !strings.Contains(st.Reason, "(partition ") {
					t.Errorf("which one? %q", st.Reason)
				}
				if o := other.Stats(); !o.Live || !o.Ready || o.Reason != "" {
					t.Errorf("the healthy one: %v %v %q", o.Live, o.Ready, o.Reason)
				}
				close(block)
			})
		})
	}
}

// F-L04: a container whose start failed for good does not come back by itself.
func TestOneThatCannotStartIsNotLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, err := container.New(b.Queue("absent", memory.QueueConfig{MustExist: true}), handle(func(*longshore.Delivery) error { return nil }), quiet(container.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err == nil {
			t.Error("it started")
		}
		if st := c.Stats(); st.Live || st.Ready || !strings.HasPrefix(st.Reason, "ended: ") {
			t.Errorf("live %v, ready %v, %q", st.Live, st.Ready, st.Reason)
		}
	})
}
