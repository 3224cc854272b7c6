package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// reports passes what a consumer finds out to its observer, in order and on a goroutine of
// its own: whoever finds something out may hold a lock that the observer needs. The
// goroutine lives only while there is something to report.
type reports struct {
	obs transport.Observer // nil: nothing is reported

	mu    sync.Mutex
	calls []func()             // not yet made, in order
	idle  chan struct{}        // closed when all calls are made; nil while there are none
	last  map[string]time.Time // when each kind of repeated notice was reported last
}

func (r *reports) post(call func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.run()
	}
}

func (r *reports) run() {
	for {
		r.mu.Lock()
		calls := r.calls
		r.calls = nil
		if len(calls) == 0 {
			close(r.idle)
			r.idle = nil
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

// wait returns when everything is reported.
func (r *reports) wait(ctx context.Context) error {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
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

// lose ends the caller's hold on deliveries and reports those that it still had. It returns
// how many.
func (r *reports) lose(ds []*longshore.Delivery, cause error) int {
	lost := ds[:0]
	for _, d := range ds {
		if d.Lose(cause) {
			lost = append(lost, d)
		}
	}
	if r.obs != nil && len(lost) > 0 {
		r.post(func() { r.obs.Lost(lost, cause) })
	}
	return len(lost)
}

// settleFailed reports acknowledgements that no commit has carried.
func (r *reports) settleFailed(ds []*longshore.Delivery, err error) {
	if r.obs == nil {
		return
	}
	for _, d := range ds {
		r.post(func() { r.obs.SettleFailed(d, longshore.Settlement{Verb: longshore.VerbAck}, err) })
	}
}

func (r *reports) down(err error) {
	if r.obs != nil {
		r.post(func() { r.obs.Down(err) })
	}
}

// leaving lets the observer give back what no handler has, so that only running handlers
// are waited for. The call is direct: nothing may start after it.
func (r *reports) leaving(ps []*partition) {
	o, ok := r.obs.(transport.LeaveObserver)
	if !ok {
		return
	}
	parts := make([]transport.TopicPartition, len(ps))
	for i, p := range ps {
		parts[i] = transport.TopicPartition{Topic: p.key.topic, Partition: p.key.num}
	}
	o.Leaving(parts)
}

func (r *reports) event(e transport.Event) {
	if r.obs != nil {
		r.post(func() { r.obs.Event(e) })
	}
}

func (r *reports) notice(text string, err error) {
	r.event(transport.Event{Kind: transport.EventNotice, Text: text, Err: err})
}

// repeated is notice for what happens again and again: each kind at most once a minute.
func (r *reports) repeated(kind, text string, err error) {
	now := time.Now()
	r.mu.Lock()
	last, known := r.last[kind]
	quiet := known && now.Sub(last) < time.Minute
	if !quiet {
		if r.last == nil {
			r.last = map[string]time.Time{}
		}
		r.last[kind] = now
	}
	r.mu.Unlock()
	if !quiet {
		r.notice(text, err)
	}
}

// ended lets the next notice of a kind through at once: what it reported is over.
func (r *reports) ended(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, kind)
}
