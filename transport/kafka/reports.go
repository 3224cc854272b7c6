package kafka

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// reports puts what a consumer finds out into words for its observer.
type reports struct {
	*notify.Notifier
	obs transport.Observer // for the one call that is direct; nil: nothing is reported

	mu   sync.Mutex           // guards last and lasting
	last map[string]time.Time // when each kind of repeated notice was reported last
	// lasting are the conditions that were reported and are not over; troubles is how many,
	// to be read without the lock for each fetch.
	lasting  map[string]bool
	troubles atomic.Int32
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

// notice gives the error its code, so that an error of the client is not taken for the
// handler's.
func (r *reports) notice(text string, err error) {
	r.Event(transport.Event{Kind: transport.EventNotice, Text: text, Err: brokerError("", "", err)})
}

// repeated is notice for what happens again and again: each kind at most once a minute.
func (r *reports) repeated(kind, text string, err error) {
	if r.due(kind, false) {
		r.notice(text, err)
	}
}

// troubled is repeated for a condition that lasts until over is called for it.
func (r *reports) troubled(condition, text string, err error) {
	if r.due(condition, true) {
		r.Event(transport.Event{Kind: transport.EventNotice, Condition: condition, Text: text, Err: brokerError("", "", err)})
	}
}

// over reports the end of a condition, if it was reported.
func (r *reports) over(condition, text string) {
	if r.troubles.Load() == 0 {
		return
	}
	r.mu.Lock()
	was := r.lasting[condition]
	if was {
		delete(r.lasting, condition)
		r.troubles.Add(-1)
	}
	r.mu.Unlock()
	if was {
		r.Event(transport.Event{Kind: transport.EventCleared, Condition: condition, Text: text})
	}
}

// due notes a report of a kind, and says whether it is the first within a minute.
func (r *reports) due(kind string, lasts bool) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.last[kind]; known && now.Sub(last) < time.Minute {
		return false
	}
	if r.last == nil {
		r.last, r.lasting = map[string]time.Time{}, map[string]bool{}
	}
	r.last[kind] = now
	if lasts && !r.lasting[kind] {
		r.lasting[kind] = true
		r.troubles.Add(1)
	}
	return true
}

// ended lets the next notice of a kind through at once: what it reported is over.
func (r *reports) ended(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, kind)
}

// The conditions that are reported in more than one place.
const conditionCommit, conditionSession, conditionLeaders = "commit", "session", "leaders"

func conditionTopic(topic string) string { return "topic " + topic }

func conditionFetch(at tp) string { return fmt.Sprintf("fetch %s/%d", at.Topic, at.Num) }
