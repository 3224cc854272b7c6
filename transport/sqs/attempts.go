package sqs

import (
	"sync"
	"time"
)

// attempts finds out which attempt a delivery is. SQS counts receives, and a receive is not
// a failed run: a stop returns what it did not start, a crash takes its neighbours along.
// What became of a receive in this process is known. What became of one in another process
// is not, and SQS has no place to write it down, so the first unknownReceives of them are
// not counted as failures and the others are (docs/adr/0024).
//
// It is shared by everything that consumes the queue through one broker, and safe for
// concurrent use.
type attempts struct {
	mu    sync.Mutex           // guards what follows
	known map[string]*history  // by message id: messages that were received more than once, or returned
	order []string             // ids by age, so that the oldest are forgotten; may hold ids that are gone
	due   map[string]time.Time // of delays that SQS cannot hold in one step
}

// history is what this process knows of a message.
type history struct {
	receives int // SQS's count at the last receive here
	attempt  int // that the next delivery carries if no other process receives it in between
	unknown  int // receives elsewhere, whose outcome is not known
}

const (
	// maxHistories bounds the memory: the oldest are forgotten, and their receives are
	// unknown from then on.
	maxHistories = 20_000
	// unknownReceives is how many receives whose outcome is unknown a message may have
	// before they count as failures. A few orderly stops elsewhere then use up no attempt,
	// and a message that crashes every process that handles it still comes to an end.
	unknownReceives = 5
	// lastReceive is how many such receives a message may have at all: the next process
	// that gets it dead-letters it before a handler sees it. It ends a message that crashes
	// its process on a queue without a redrive policy, and is high because a dependency's
	// outage may send a message from process to process for a day.
	lastReceive = 1000
)

func newAttempts() *attempts {
	return &attempts{known: map[string]*history{}, due: map[string]time.Time{}}
}

// attempt of a message that was received so many times. At the first time nothing has
// failed in this queue, whatever is known of it from before it was moved away and back.
// last says that it was received so often that no handler should see it any more.
func (a *attempts) attempt(id string, receives int) (n int, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if receives <= 1 {
		delete(a.known, id)
		return 1, false
	}
	h := a.known[id]
	if h == nil {
		h = &history{attempt: 1}
		a.remember(id, h)
	}
	elsewhere := max(receives-1-h.receives, 0)
	uncounted := min(elsewhere, max(unknownReceives-h.unknown, 0))
	h.unknown += elsewhere
	h.attempt += elsewhere - uncounted
	h.receives = receives
	return h.attempt, h.unknown >= lastReceive
}

// remember adds a history. The caller holds mu.
func (a *attempts) remember(id string, h *history) {
	if len(a.order) >= maxHistories {
		delete(a.known, a.order[0])
		a.order = a.order[1:]
	}
	a.known[id] = h
	a.order = append(a.order, id)
}

// next notes which attempt the next delivery is, of a message that was received so many
// times when it was returned or lost here.
func (a *attempts) next(id string, receives, attempt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.known[id]
	if h == nil {
		h = &history{}
		a.remember(id, h)
	}
	h.receives, h.attempt = max(receives, h.receives), attempt
}

// wait says that the message should not be handed out before due, which SQS cannot hold
// alone.
func (a *attempts) wait(id string, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.due) < maxHistories {
		a.due[id] = due
	}
}

// waitFor keeps what is left of a return's delay whose message is visible already.
func (a *attempts) waitFor(o *op, now time.Time) {
	if due := o.since.Add(o.verb.Delay); due.After(now) {
		a.wait(o.h.id, due)
	}
}

// early is how long a message that was received has still to wait; 0: not at all.
func (a *attempts) early(id string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := a.due[id].Sub(now)
	if rest < time.Second {
		delete(a.due, id)
		return 0
	}
	return rest
}

// forget drops a message that is done.
func (a *attempts) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, id) // its place in order goes with time
}
