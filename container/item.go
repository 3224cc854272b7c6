package container

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
)

// item is what the container knows of a delivery it holds. Items are used
// again and therefore never reach a handler: a leftover goroutine of one message
// must not touch the next one's.
type item struct {
	d    *longshore.Delivery
	gen  *generation
	lane *lane // nil: unordered
	next *item // in a lane or a free list
	size int64

	// What identifies the message as it came. A handler may put another in its place
	// (Delivery.Replace) while somebody looks at what hangs here.
	id      string
	key     []byte
	headers longshore.Headers

	fail     error       // failed before the handler: its order function panicked
	dead     *deadLetter // not nil: only its dead-lettering is to be tried again
	copyID   string      // what copies of it carry as their identity; "": none was made
	releases int         // times it was released, for the backoff
	solo     bool        // its batch failed as a whole: next time alone
	permit   bool        // holds one of the gate's
	swept    bool        // its loss was heard of while its handler ran
	returned bool        // with manual settling: its handler has returned
	leaving  bool        // its partition goes to another member: what is left undone goes back
	started  time.Time   // of the handler
	due      time.Time   // parked until then

	notes atomic.Pointer[notes]
}

// notes is what a handler did with its delivery besides returning: rare, so it is
// made only then.
type notes struct {
	mu       sync.Mutex
	closed   bool
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
	head *item
	n    int
}

const maxFree = 1024

func (f *freeItems) get() *item {
	it := f.head
	if it == nil {
		return &item{}
	}
	f.head, f.n = it.next, f.n-1
	it.next = nil
	return it
}

func (f *freeItems) put(it *item) {
	it.clear()
	if f.n < maxFree {
		it.next, f.head = f.head, it
		f.n++
	}
}

// clear makes the item new. Pointers that are nil are left alone: while the garbage
// collector marks, each one that is written costs, and this happens to every message.
func (it *item) clear() {
	it.d, it.gen, it.lane, it.next = nil, nil, nil, nil
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
	it.size, it.releases = 0, 0
	it.solo, it.permit, it.swept, it.returned, it.leaving = false, false, false, false, false
	it.started = time.Time{}
	if !it.due.IsZero() {
		it.due = time.Time{}
	}
}

// ring is a queue of items that grows and shrinks by powers of two.
type ring struct {
	buf  []*item
	head int
	n    int
}

const minRing = 64

func (q *ring) push(it *item) {
	if q.n == len(q.buf) {
		q.resize(max(minRing, 2*len(q.buf)))
	}
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = it
	q.n++
}

func (q *ring) pop() *item {
	it := q.take()
	if q.n == 0 && len(q.buf) > maxFree {
		q.buf, q.head = nil, 0
	}
	return it
}

func (q *ring) front() *item { return q.buf[q.head] }

func (q *ring) at(i int) *item { return q.buf[(q.head+i)&(len(q.buf)-1)] }

func (q *ring) resize(size int) {
	buf := make([]*item, size)
	for i := range q.n {
		buf[i] = q.at(i)
	}
	q.buf, q.head = buf, 0
}

// filter keeps the items for which keep is true, in order.
func (q *ring) filter(keep func(*item) bool) {
	for range q.n {
		if it := q.take(); keep(it) {
			q.push(it)
		}
	}
}

// take is pop without giving the buffer back.
func (q *ring) take() *item {
	it := q.buf[q.head]
	q.buf[q.head] = nil
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	return it
}
