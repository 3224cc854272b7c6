package container

import (
	"bytes"
	"hash/maphash"
)

// lane keeps the deliveries of one key in order. It exists only while one of
// them is here. The first of them is in the ready ring, running or parked, and not
// in the list; the others wait in it.
type lane struct {
	hash    uint64
	key     []byte
	chain   *lane // next in the table's bucket or in the free list
	head    *item
	tail    *item
	waiting int
	bytes   int64 // of the waiting
	running int   // more than one only in a batch
	parked  bool  // its first one waits for a retry
	mark    *item // last one that a failed batch put back
	gap     bool  // one of the batch that is with a handler is lost: those behind it must not stay
}

func (l *lane) push(it *item) {
	it.next = nil
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
	l.waiting++
	l.bytes += it.size
}

// insert puts one back in front of those that were not started, behind others
// that were put back before it.
func (l *lane) insert(it *item) {
	if l.mark == nil {
		it.next, l.head = l.head, it
	} else {
		it.next, l.mark.next = l.mark.next, it
	}
	if it.next == nil {
		l.tail = it
	}
	l.mark = it
	l.waiting++
	l.bytes += it.size
}

func (l *lane) pop() *item {
	it := l.head
	if it == nil {
		return nil
	}
	l.head = it.next
	if l.head == nil {
		l.tail = nil
	}
	it.next = nil
	if l.mark == it {
		l.mark = nil
	}
	l.waiting--
	l.bytes -= it.size
	return it
}

// filter keeps the waiting items for which keep is true; the caller looks after
// the others. What a failed batch put back stays in front of what it puts back next.
func (l *lane) filter(keep func(*item) bool) {
	it, mark := l.head, l.mark
	l.head, l.tail, l.waiting, l.bytes, l.mark = nil, nil, 0, 0, nil
	for it != nil {
		next := it.next
		it.next = nil
		last := it == mark
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

// laneTable finds lanes by key: a chained hash table over bytes. A Go map would
// cost a string allocation for every new lane and keep its peak for ever.
type laneTable struct {
	seed    maphash.Seed
	buckets []*lane
	n       int
	free    *lane
	nfree   int
}

const minBuckets = 64

func newLaneTable() *laneTable {
	return &laneTable{seed: maphash.MakeSeed(), buckets: make([]*lane, minBuckets)}
}

// get returns the key's lane and makes it if there is none.
func (t *laneTable) get(key []byte) (l *lane, fresh bool) {
	h := maphash.Bytes(t.seed, key)
	for l = t.buckets[h&uint64(len(t.buckets)-1)]; l != nil; l = l.chain {
		if l.hash == h && bytes.Equal(l.key, key) {
			return l, false
		}
	}
	if t.n >= len(t.buckets) {
		t.rehash(2 * len(t.buckets))
	}
	if l = t.free; l != nil {
		t.free, t.nfree = l.chain, t.nfree-1
	} else {
		l = &lane{}
	}
	// The key is copied: keeping the message's would keep its body alive.
	l.hash = h
	if len(key) <= cap(l.key) {
		l.key = l.key[:len(key)] // no pointer is written: see item.clear
		copy(l.key, key)
	} else {
		l.key = append([]byte(nil), key...)
	}
	b := &t.buckets[h&uint64(len(t.buckets)-1)]
	l.chain, *b = *b, l
	t.n++
	return l, true
}

// drop forgets an empty lane.
func (t *laneTable) drop(l *lane) {
	p := &t.buckets[l.hash&uint64(len(t.buckets)-1)]
	for *p != l {
		p = &(*p).chain
	}
	*p = l.chain
	t.n--
	l.running, l.parked = 0, false // it is empty, so head, tail, waiting and bytes are zero
	if l.mark != nil {
		l.mark = nil
	}
	if cap(l.key) > 256 {
		l.key = nil
	}
	if t.nfree < maxFree {
		l.chain, t.free = t.free, l
		t.nfree++
	}
	if len(t.buckets) > minBuckets && t.n < len(t.buckets)/8 {
		t.rehash(len(t.buckets) / 4)
	}
}

func (t *laneTable) rehash(size int) {
	old := t.buckets
	t.buckets = make([]*lane, max(size, minBuckets))
	for _, l := range old {
		for l != nil {
			next := l.chain
			b := &t.buckets[l.hash&uint64(len(t.buckets)-1)]
			l.chain, *b = *b, l
			l = next
		}
	}
}

// each calls f for every lane; f must not add or drop any.
func (t *laneTable) each(f func(*lane)) {
	for _, l := range t.buckets {
		for ; l != nil; l = l.chain {
			f(l)
		}
	}
}
