package amqptest

import "time"

// entry is a message in one queue.
type entry struct {
	msg         *message
	seq         uint64 // its place in the queue, kept over requeueing
	level       int    // priority, capped by the queue's
	expires     time.Time
	redelivered bool
	returns     int // of a quorum queue: what counts towards the limit
	acquired    int // of a quorum queue: how often it was handed out before

	prev, next *entry
}

// entryList is a linked list through the entries: both ends and any place in
// O(1), which requeueing in the original order needs.
type entryList struct {
	front, back *entry
}

func (l *entryList) pushBack(e *entry) { l.insertAfter(l.back, e) }

// insertAfter puts e behind at; nil = at the front.
func (l *entryList) insertAfter(at, e *entry) {
	e.prev = at
	if at == nil {
		e.next, l.front = l.front, e
	} else {
		e.next, at.next = at.next, e
	}
	if e.next == nil {
		l.back = e
	} else {
		e.next.prev = e
	}
}

// insertInOrder puts a requeued entry where it was. It is nearly always older
// than everything else, so the search begins at the front.
func (l *entryList) insertInOrder(e *entry) {
	var at *entry
	for n := l.front; n != nil && n.seq < e.seq; n = n.next {
		at = n
	}
	l.insertAfter(at, e)
}

func (l *entryList) popFront() *entry {
	e := l.front
	if e == nil {
		return nil
	}
	l.front = e.next
	if l.front == nil {
		l.back = nil
	} else {
		l.front.prev = nil
	}
	e.next = nil
	return e
}
