package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/clock"
	"github.com/longshore-go/longshore/transport"
)

// Broker is a broker inside this process. All methods are safe for concurrent
// use. What it holds is gone when nothing refers to it any more.
type Broker struct {
	cfg    Config          // as given
	clock  longshore.Clock // of leases and delays
	faults faults          // what tests make fail

	mu        sync.Mutex             // guards everything below, in queues and consumers too: one lock shows all at one moment
	queues    map[string]*queue      // by name
	topics    map[string]*topic      // by name
	consumers map[*consumer]struct{} // open ones, to be ended by faults
	opened    int                    // publishers
	tags      int                    // counts deliveries
}

// New makes an empty broker.
func New(cfg Config) *Broker {
	if cfg.Name == "" {
		cfg.Name = "memory"
	}
	b := &Broker{cfg: cfg, clock: clock.Or(cfg.Clock), queues: map[string]*queue{}, topics: map[string]*topic{},
		consumers: map[*consumer]struct{}{}}
	return b
}

// Queue is a source that consumes from the named queue. Consumers of one queue
// share its messages. A wrong configuration is reported by Check and by Open.
//
// The source is also a transport.Describer, Checker, Outlet, Browser and Prober.
func (b *Broker) Queue(name string, cfg QueueConfig) transport.Source {
	return &queueSource{b: b, name: name, cfg: cfg}
}

// Declare makes queues exist, for those who publish or consume with MustExist.
func (b *Broker) Declare(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.queue(name)
	}
}

// Delete removes queues with all they hold. Their consumers are down with
// [longshore.CodeCanceledBy].
func (b *Broker) Delete(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		q := b.queues[name]
		if q == nil {
			continue
		}
		for _, c := range b.consumersOf([]string{name}) {
			c.fail(&longshore.Error{Code: longshore.CodeCanceledBy, Op: "consume from " + q.title(), Source: name,
				Err: errors.New("the queue was deleted")})
		}
		q.discard()
		delete(b.queues, name)
	}
}

// Purge removes ready and delayed messages and returns their number.
func (b *Broker) Purge(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[name]; q != nil {
		return q.purge()
	}
	return 0
}

// queue returns the named queue and makes it if need be.
func (b *Broker) queue(name string) *queue {
	q := b.queues[name]
	if q == nil {
		q = &queue{b: b, name: name}
		b.queues[name] = q
	}
	return q
}

func (b *Broker) consumersOf(names []string) []*consumer {
	var cs []*consumer
	for c := range b.consumers {
		if len(names) == 0 {
			cs = append(cs, c)
		}
		for _, n := range names {
			if c.q.name == n {
				cs = append(cs, c)
			}
		}
	}
	return cs
}

func (b *Broker) notFound(name string) error {
	return &longshore.Error{Code: longshore.CodeNotFound, Op: fmt.Sprintf("open memory queue %q", name), Source: name,
		Err: errors.New("no such queue"), Hint: "declare it, or leave MustExist out"}
}

// purge removes all that is not out.
func (q *queue) purge() int {
	n := q.ready.len() + q.waiting + q.delayed
	out := map[*group]bool{}
	for c := range q.b.consumers {
		if c.q == q {
			c.held.groups(out)
		}
	}
	for key, g := range q.groups {
		g.waiting.clear()
		if !out[g] {
			delete(q.groups, key)
		}
	}
	q.ready = backlog{}
	leases := q.due.items[:0]
	for _, d := range q.due.items {
		if d.e == nil {
			leases = append(leases, d)
		}
	}
	q.due.items = nil
	for _, d := range leases {
		q.due.push(d)
	}
	q.waiting, q.delayed = 0, 0
	return n
}

// discard ends a queue that no consumer uses any more.
func (q *queue) discard() {
	q.purge()
	q.due.items = nil
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Probe reports whether the broker would let a consumer in.
func (s *queueSource) Probe(ctx context.Context) error {
	if err := s.b.slow(ctx, OpOpen); err != nil {
		return err
	}
	return s.b.faults.opening(s.name)
}
