package containertest

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// The patience of the helpers.
const (
	startWait = 30 * time.Second
	idleWait  = 60 * time.Second
	leaveWait = 2 * time.Second
	pollEvery = 5 * time.Millisecond
)

// Start starts c and stops it at the end of the test, which fails if a delivery
// was abandoned, a settlement was not flushed, or a handler's goroutine is left.
func Start(t testing.TB, c *container.ListenerContainer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("%v", err)
		}
		if !poll(leaveWait, func() bool { return c.Stats().Workers == 0 }) {
			t.Errorf("container %q: %d worker goroutines are left", c.Name(), c.Stats().Workers)
		}
	})
}

// Publish sends bodies to what c consumes from. Its source must be able to
// publish (transport.Outlet), as all of Longshore's own are.
func Publish(t testing.TB, c *container.ListenerContainer, bodies ...string) {
	t.Helper()
	msgs := make([]*longshore.Message, len(bodies))
	for i, b := range bodies {
		msgs[i] = &longshore.Message{Body: []byte(b)}
	}
	PublishMessages(t, c, msgs...)
}

// PublishMessages is Publish for messages with keys, headers and properties.
func PublishMessages(t testing.TB, c *container.ListenerContainer, msgs ...*longshore.Message) {
	t.Helper()
	out, ok := c.Source().(transport.Outlet)
	if !ok {
		t.Fatalf("the source of container %q cannot publish", c.Name())
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	pub, self, err := out.Publisher(ctx)
	if err != nil {
		t.Fatalf("publisher: %v", err)
	}
	defer func() { _ = pub.Close(ctx) }()
	if err := pub.Publish(ctx, self, msgs...); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// WaitIdle waits until nothing is queued at the broker, as far as it tells,
// nothing runs and nothing waits for a retry here. The test fails if that takes
// longer than a minute. On SQS a message in a poll's answer is neither at the broker nor
// here for a moment: a test that published one waits for its effect first.
func WaitIdle(t testing.TB, c *container.ListenerContainer) {
	t.Helper()
	var last error
	idleLooks := 0
	idle := poll(idleWait, func() bool {
		ok, err := c.Idle(t.Context())
		if last = err; !ok || err != nil {
			idleLooks = 0
			return false
		}
		idleLooks++ // twice: a message can be on its way from the broker
		return idleLooks > 1
	})
	if !idle {
		t.Fatalf("container %q is not idle after %v: %+v (%v)", c.Name(), idleWait, c.Stats(), last)
	}
}

func poll(patience time.Duration, cond func() bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
