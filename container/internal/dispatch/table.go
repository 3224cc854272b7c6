package dispatch

import (
	"bytes"
	"hash/maphash"
)

// table finds lanes by key: a chained hash table over bytes. A Go map would cost a
// string allocation for every new lane and keep its peak for ever. all lists them in an
// order that depends only on what was done, not on the seed of the hash.
type table[T any] struct {
	seed    maphash.Seed // of this table alone, so that no sender can choose colliding keys
	buckets []*lane[T]   // a power of two of them
	all     []*lane[T]   // every lane, in no order that matters
	free    *lane[T]     // dropped ones, to be used again without an allocation
	nfree   int          // how many those are
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
