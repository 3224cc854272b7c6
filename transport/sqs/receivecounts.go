package sqs

import (
	"sync"
	"time"
)

// returns remembers, for messages that were given back, which attempt their next
// delivery is. SQS counts every receive; what no handler saw, or was not the
// message's fault, is taken off here. Another process cannot know it.
type returns struct {
	mu    sync.Mutex
	known map[string]int // by message id: attempt minus receive count
	order []string
	due   map[string]time.Time // of delays that SQS cannot hold in one step
}

// maxReturns bounds the memory: the oldest are forgotten.
const maxReturns = 20_000

func newReturns() *returns { return &returns{known: map[string]int{}, due: map[string]time.Time{}} }

// attempt of a message that was received so many times. At the first time nothing has
// failed in this queue, whatever is known of it from before it was moved away and back.
func (r *returns) attempt(id string, receives int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if receives <= 1 {
		delete(r.known, id)
	}
	return max(receives+r.known[id], 1)
}

// next says what the next delivery should carry.
func (r *returns) next(id string, receives, attempt int) {
	offset := attempt - (receives + 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.known[id]; ok || offset == 0 {
		if ok && old != offset {
			r.known[id] = offset
		}
		return
	}
	if len(r.order) >= maxReturns {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	r.known[id] = offset
	r.order = append(r.order, id)
}

// wait says that the message should not be handed out before due, which SQS cannot
// hold alone.
func (r *returns) wait(id string, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) < maxReturns {
		r.due[id] = due
	}
}

// waitFor keeps what is left of a return's delay whose message is visible already.
func (r *returns) waitFor(o *op, now time.Time) {
	if due := o.since.Add(o.verb.Delay); due.After(now) {
		r.wait(o.h.id, due)
	}
}

// early is how long a message that was received has still to wait; 0: not.
func (r *returns) early(id string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.due[id].Sub(now)
	if rest < time.Second {
		delete(r.due, id)
		return 0
	}
	return rest
}

// forget drops a message that is done.
func (r *returns) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, id) // its place in order goes with time
}
