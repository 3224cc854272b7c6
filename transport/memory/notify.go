package memory

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// notifier calls an observer in order and from a goroutine of its own: the one
// who settles or closes may hold a lock that the observer needs. The goroutine
// lives only while there is something to tell.
type notifier struct {
	mu    sync.Mutex
	calls []func()
	idle  chan struct{} // closed when all was told; nil while nothing is
}

func (n *notifier) post(call func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
	if n.idle == nil {
		n.idle = make(chan struct{})
		go n.run()
	}
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		calls := n.calls
		n.calls = nil
		if len(calls) == 0 {
			close(n.idle)
			n.idle = nil
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

// wait returns when all was told and the goroutine is at its end.
func (n *notifier) wait(ctx context.Context) error {
	n.mu.Lock()
	idle := n.idle
	n.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *consumer) tellLost(ds []*longshore.Delivery, cause error) {
	if c.obs != nil {
		c.tell.post(func() { c.obs.Lost(ds, cause) })
	}
}

func (c *consumer) reportFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	c.failed++
	if c.obs != nil {
		c.tell.post(func() { c.obs.SettleFailed(d, s, err) })
	}
}

func (c *consumer) down(err error) {
	if c.obs != nil {
		c.tell.post(func() { c.obs.Down(err) })
	}
}

func (c *consumer) event(kind transport.EventKind, text string) {
	if c.obs != nil {
		c.tell.post(func() { c.obs.Event(transport.Event{Kind: kind, Text: text}) })
	}
}
