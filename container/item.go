package container

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// item is what the container knows of a delivery it holds; where it waits and what waits
// for it, the Scheduler knows. Items are used again and therefore never reach a handler: a
// leftover goroutine of one message must not touch the next one's.
type item struct {
	dispatch.Item[item] // its place in the Scheduler

	d    *longshore.Delivery // the delivery; another one for each attempt
	gen  *generation         // the subscription that delivered it, on which it is settled
	name *laneKey            // of its lane, where user code made it; only until it is admitted

	// What identifies the message as it came. A handler may put another in its place
	// (Delivery.Replace) while an operator looks at a delivery that hangs.
	id      string
	key     []byte            // for messages about it
	headers longshore.Headers // for the identity of copies

	received int64       // when, in Unix nanoseconds; the delivery may not be read while a handler has it
	fail     error       // failed before the handler: its order function panicked
	dead     *deadLetter // not nil: only its dead-lettering is to be tried again
	copyID   string      // what copies of it carry as their identity; "": none was made
	releases int         // times it was released, for the backoff
	solo     bool        // its batch failed as a whole: next time alone
	permit   bool        // holds one of the gate's
	returned bool        // with manual settling: its handler has returned
	leaving  bool        // its partition goes to another member: if its handler fails, it goes back
	started  time.Time   // of the handler

	notes atomic.Pointer[notes] // nil as for nearly all: the handler only returned
}

// notes is what a handler did with its delivery besides returning: rare, so it is
// made only then.
type notes struct {
	mu       sync.Mutex    // guards what follows: a goroutine that the handler left behind may still write
	closed   bool          // the handler has returned, so nothing counts any more
	waited   time.Duration // spent in Delivery.Wait
	explicit error         // the verdict of a verb, carried out when the handler returns
	acked    bool          // by a verb that waits for what a middleware commits
}

// write returns the item's notes, locked; nil if its handler has returned.
func (it *item) write() *notes {
	n := it.notes.Load()
	if n == nil {
		it.notes.CompareAndSwap(nil, &notes{})
		n = it.notes.Load()
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	return n
}

// read takes the notes when the handler has returned; nothing is written after it.
func (it *item) read() (waited time.Duration, explicit error) {
	n := it.notes.Swap(closedNotes)
	if n == nil || n == closedNotes {
		return 0, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.waited, n.explicit
}

// closedNotes says that a handler has returned; it is never written to.
var closedNotes = &notes{closed: true} //nolint:gochecknoglobals // a constant

// freeItems is a capped free list: a burst must not pin its peak for ever.
type freeItems struct {
	list []*item // at most maxFree
}

const maxFree = 1024

func (f *freeItems) get() *item {
	last := len(f.list) - 1
	if last < 0 {
		return &item{}
	}
	it := f.list[last]
	f.list = f.list[:last]
	return it
}

func (f *freeItems) put(it *item) {
	it.clear()
	if len(f.list) < maxFree {
		f.list = append(f.list, it)
	}
}

// clear makes the item new, but for the Scheduler's part, which has left. Pointers that
// are nil are left alone: while the garbage collector marks, each one that is written
// costs, and this happens to every message.
func (it *item) clear() {
	it.d, it.gen = nil, nil
	if it.id != "" {
		it.id = ""
	}
	if it.key != nil {
		it.key = nil
	}
	if it.headers != nil {
		it.headers = nil
	}
	if it.fail != nil || it.dead != nil {
		it.fail, it.dead = nil, nil
	}
	if it.notes.Load() != nil {
		it.notes.Store(nil)
	}
	it.releases = 0
	it.solo, it.permit, it.returned, it.leaving = false, false, false, false
	it.started = time.Time{}
}
