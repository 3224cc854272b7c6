package dispatch

import (
	"bytes"
	"hash/maphash"
)

// Standing is why what waits in a lane cannot go on. Whatever the reason is, a lane that
// stands uses its own account: its followers take no place in the window, which is for
// the others (see room.go).
type Standing uint8

const (
	// Open: the lane goes on. Its first item is ready, or with a handler that has not
	// had longer than others need.
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
// wait in it.
type lane[T any] struct {
	key      []byte
	hash     uint64
	chain    *lane[T] // next in the table's bucket or in the free list
	pos      int      // its place in the table's list
	head     *Item[T]
	tail     *Item[T]
	waiting  Sum      // of the list
	running  int      // running or taken; more than one only in a batch or when it is emptied
	since    uint64   // how many had ended when the first of the running ones began
	mark     *Item[T] // the last one that a failed batch put back
	standing Standing
	// gap says that one of the batch which is with a handler is lost: those of the batch
	// that are behind it must not be tried again here, since it comes again.
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

// table finds lanes by key: a chained hash table over bytes. A Go map would cost a
// string allocation for every new lane and keep its peak for ever. all lists them in an
// order that depends only on what was done, not on the seed of the hash.
type table[T any] struct {
	seed    maphash.Seed
	buckets []*lane[T]
	all     []*lane[T]
	free    *lane[T]
	nfree   int
}

const (
	minBuckets = 64
	longKey    = 256 // a longer key's memory is not kept for the next one
)

func newTable[T any]() table[T] {
	return table[T]{seed: maphash.MakeSeed(), buckets: make([]*lane[T], minBuckets)}
}

func (t *table[T]) bucket(hash uint64) **lane[T] {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}

// get returns the key's lane and makes it if there is none.
func (t *table[T]) get(key []byte) (l *lane[T], fresh bool) {
	h := maphash.Bytes(t.seed, key)
	for l = *t.bucket(h); l != nil; l = l.chain {
		if l.hash == h && bytes.Equal(l.key, key) {
			return l, false
		}
	}
	if len(t.all) >= len(t.buckets) {
		t.rehash(2 * len(t.buckets))
	}
	if l = t.free; l != nil {
		t.free, t.nfree = l.chain, t.nfree-1
	} else {
		l = &lane[T]{}
	}
	// The key is copied: keeping the message's would keep its body alive.
	l.hash = h
	if len(key) <= cap(l.key) {
		l.key = l.key[:len(key)] // no pointer is written: see Item.clear
		copy(l.key, key)
	} else {
		l.key = append([]byte(nil), key...)
	}
	b := t.bucket(h)
	l.chain, *b = *b, l
	l.pos = len(t.all)
	t.all = append(t.all, l)
	return l, true
}

// drop forgets an empty lane.
func (t *table[T]) drop(l *lane[T]) {
	p := t.bucket(l.hash)
	for *p != l {
		p = &(*p).chain
	}
	*p = l.chain
	last := len(t.all) - 1
	if moved := t.all[last]; moved != l {
		t.all[l.pos], moved.pos = moved, l.pos
	}
	t.all = t.all[:last] // lanes are used again: what stays behind pins little
	if last == 0 && cap(t.all) > most {
		t.all = nil
	}
	if cap(l.key) > longKey {
		l.key = nil
	}
	if t.nfree < most {
		l.chain, t.free = t.free, l
		t.nfree++
	}
	if n := len(t.buckets); len(t.all) < n/8 {
		t.rehash(n / 4)
	}
}

func (t *table[T]) rehash(size int) {
	if size = max(size, minBuckets); size == len(t.buckets) {
		return
	}
	t.buckets = make([]*lane[T], size)
	for _, l := range t.all {
		b := t.bucket(l.hash)
		l.chain, *b = *b, l
	}
}
