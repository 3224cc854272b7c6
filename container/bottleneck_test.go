package container_test

import (
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestWhyOfAContainer(t *testing.T) {
	b := memory.New(memory.Config{})
	c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }), container.Config{})
	eventually(t, "it runs", func() bool { return c.Bottleneck() == container.Bottleneck{Text: "nothing: no work waits"} })
	c.Pause()
	if got := c.Bottleneck(); got.By != container.ByState {
		t.Errorf("%+v", got)
	}
	stop(t, c)
	if got := c.Bottleneck(); got.Text != "it is stopped" {
		t.Errorf("%+v", got)
	}
}
