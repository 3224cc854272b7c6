package kafka

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// reports puts what a consumer finds out into words for its observer.
type reports struct {
	*notify.Notifier
	obs transport.Observer // for the one call that is direct; nil: nothing is reported

	mu   sync.Mutex
	last map[string]time.Time // when each kind of repeated notice was reported last
}

func newReports(obs transport.Observer) *reports {
	return &reports{Notifier: notify.New(obs), obs: obs}
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
	r.Lost(lost, cause)
	return len(lost)
}

// settleFailed reports acknowledgements that no commit has carried.
func (r *reports) settleFailed(ds []*longshore.Delivery, err error) {
	for _, d := range ds {
		r.SettleFailed(d, longshore.Settlement{Verb: longshore.VerbAck}, err)
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

func (r *reports) notice(text string, err error) {
	r.Event(transport.Event{Kind: transport.EventNotice, Text: text, Err: err})
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
