package notify

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Notifier queues calls to an observer and makes them from a goroutine of its own, one
// after the other. A transport usually learns of a loss or a failure while it holds a
// lock that the observer may need, so it must not call the observer directly. The
// goroutine lives only while calls are queued, so an idle consumer costs nothing.
type Notifier struct {
	obs transport.Observer // nil: every report is dropped

	mu    sync.Mutex
	calls []func()      // not made yet, oldest first
	idle  chan struct{} // closed once the queue is empty; nil while it is
}

// New returns a notifier for an observer, which may be nil.
func New(obs transport.Observer) *Notifier { return &Notifier{obs: obs} }

// Observed reports whether anyone listens, so that a costly report can be skipped.
func (n *Notifier) Observed() bool { return n.obs != nil }

// Lost reports deliveries that the broker has taken back.
func (n *Notifier) Lost(ds []*longshore.Delivery, cause error) {
	if n.obs != nil && len(ds) > 0 {
		n.Post(func() { n.obs.Lost(ds, cause) })
	}
}

// SettleFailed reports a settlement that was accepted and not carried out.
func (n *Notifier) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	if n.obs != nil {
		n.Post(func() { n.obs.SettleFailed(d, s, err) })
	}
}

// Down reports the end of the consumer.
func (n *Notifier) Down(err error) {
	if n.obs != nil {
		n.Post(func() { n.obs.Down(err) })
	}
}

// Event reports anything else.
func (n *Notifier) Event(e transport.Event) {
	if n.obs != nil {
		n.Post(func() { n.obs.Event(e) })
	}
}

// Post queues any call, behind the reports made before it.
func (n *Notifier) Post(call func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
	if n.idle == nil {
		n.idle = make(chan struct{})
		go n.run()
	}
}

// run makes the queued calls and ends when there are none left.
func (n *Notifier) run() {
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

// Wait returns once every call queued before it has been made and no other is queued.
// Errors: ctx's.
func (n *Notifier) Wait(ctx context.Context) error {
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
