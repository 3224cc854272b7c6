package dispatch

// Standing is why a lane is blocked, or that it is open. Whatever the reason is, a blocked
// lane uses its own account: its followers take no place in the window, which is for the
// other lanes (see ledger.go).
type Standing uint8

const (
	// Open: the lane makes progress. Its first item is ready, or with a handler that has
	// not taken longer than others do.
	Open Standing = iota
	// Hung: the first item is with a handler that others have overtaken again and again,
	// or that was reported as one that does not return.
	Hung
	// Lost: the broker took the first item back while its handler runs. Until that
	// returns nothing of the lane may start.
	Lost
	// Waiting: the first item waits for its time: a retry, one that is kept, or one that
	// is to be moved again.
	Waiting

	standings
)

// String names the reason.
func (s Standing) String() string {
	return [standings]string{"open", "hung", "lost", "waiting"}[s]
}

// lane keeps the items of one key in order. It exists only while one of them is here.
// The first of them is ready, running, parked or due, and not in the list; the others
// wait in it. Of its fields, table sets those that find it, and lanes the others.
type lane[T any] struct {
	key   []byte   // its name: a copy, since the message's would keep the body alive
	hash  uint64   // of the key, so that neither growing nor dropping hashes again
	chain *lane[T] // next in the table's bucket or in the free list
	pos   int      // its place in the table's list, so that it leaves in constant time

	head     *Item[T] // the first one that waits
	tail     *Item[T] // the last one, which the next follows
	mark     *Item[T] // the last one that a failed batch put back; the next goes behind it
	waiting  Sum      // of the list: what moves between accounts when the standing changes
	running  int      // running or taken; more than one only in a batch or when it is emptied
	since    uint64   // lanes.ended when the first of the running ones began
	standing Standing // which account its list is charged to
	measured int      // how many waited when the lane was measured last; see longest.go
	blocked  bool     // whether it was blocked then
	// gap: one of the batch that is with a handler is lost. Those of the batch behind it
	// must not be tried again here, since it will be delivered again.
	gap bool
}

func (l *lane[T]) push(it *Item[T]) {
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
	l.waiting.add(it.size)
}

// insert puts one back in front of those that were not started, behind others that were
// put back before it.
func (l *lane[T]) insert(it *Item[T]) {
	if l.mark == nil {
		it.next, l.head = l.head, it
	} else {
		it.next, l.mark.next = l.mark.next, it
	}
	if it.next == nil {
		l.tail = it
	}
	l.mark = it
	l.waiting.add(it.size)
}

func (l *lane[T]) pop() *Item[T] {
	it := l.head
	if it != nil {
		l.cut(nil, it)
	}
	return it
}

// remove takes one that waits out of the lane.
func (l *lane[T]) remove(it *Item[T]) {
	var before *Item[T]
	for at := l.head; at != it; at = at.next {
		before = at
	}
	l.cut(before, it)
}

// cut takes out the item behind before; nil: it is the first.
func (l *lane[T]) cut(before, it *Item[T]) {
	if before == nil {
		l.head = it.next
	} else {
		before.next = it.next
	}
	if l.tail == it {
		l.tail = before
	}
	if l.mark == it {
		l.mark = before
	}
	it.next = nil
	l.waiting.sub(it.size)
}

// filter keeps the waiting items for which keep is true; the caller looks after the
// others. What a failed batch put back stays in front of what it puts back next.
func (l *lane[T]) filter(keep func(*Item[T]) bool) {
	it, mark := l.head, l.mark
	l.head, l.tail, l.mark, l.waiting = nil, nil, nil, Sum{}
	for it != nil {
		next, last := it.next, it == mark
		it.next = nil
		if keep(it) {
			l.push(it)
			if mark != nil {
				l.mark = it
			}
		}
		if last {
			mark = nil
		}
		it = next
	}
}
