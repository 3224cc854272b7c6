package amqp

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// notifier calls an observer in order, from a goroutine of its own: the caller may hold a
// lock that the observer needs. The goroutine lives only while there is something to
// report.
type notifier struct {
	obs transport.Observer // nil: nothing is reported

	mu    sync.Mutex
	calls []func()      // in the order in which they were posted
	idle  chan struct{} // closed when everything was reported; nil while there is nothing
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

// wait returns when everything was reported.
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

func (n *notifier) lost(ds []*longshore.Delivery, cause error) {
	if n.obs != nil && len(ds) > 0 {
		n.post(func() { n.obs.Lost(ds, cause) })
	}
}

func (n *notifier) settleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	if n.obs != nil {
		n.post(func() { n.obs.SettleFailed(d, s, err) })
	}
}

func (n *notifier) down(err error) {
	if n.obs != nil {
		n.post(func() { n.obs.Down(err) })
	}
}

func (n *notifier) event(e transport.Event) {
	if n.obs != nil {
		n.post(func() { n.obs.Event(e) })
	}
}
