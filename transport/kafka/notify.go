package kafka

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// teller calls an observer in order, from a goroutine of its own: who finds
// something out may hold what the observer needs. The goroutine lives only
// while there is something to tell.
type teller struct {
	obs transport.Observer

	mu    sync.Mutex
	calls []func()
	idle  chan struct{} // closed when all was told; nil while nothing is
}

func (t *teller) post(call func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, call)
	if t.idle == nil {
		t.idle = make(chan struct{})
		go t.run()
	}
}

func (t *teller) run() {
	for {
		t.mu.Lock()
		calls := t.calls
		t.calls = nil
		if len(calls) == 0 {
			close(t.idle)
			t.idle = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

// wait returns when all was told.
func (t *teller) wait(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
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

func (t *teller) lost(ds []*longshore.Delivery, cause error) {
	if t.obs != nil && len(ds) > 0 {
		t.post(func() { t.obs.Lost(ds, cause) })
	}
}

func (t *teller) settleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	if t.obs != nil {
		t.post(func() { t.obs.SettleFailed(d, s, err) })
	}
}

func (t *teller) down(err error) {
	if t.obs != nil {
		t.post(func() { t.obs.Down(err) })
	}
}

func (t *teller) event(e transport.Event) {
	if t.obs != nil {
		t.post(func() { t.obs.Event(e) })
	}
}
