package dispatch

// arrivals lists everything that is held in the order in which it was admitted, so that the
// oldest is known without a walk: statistics are read while thousands are held, and each
// read keeps the workers from their next message. The links are in the items, so that an
// item can leave from the middle at the price of its two neighbours.
type arrivals[T any] struct{ first, last *Item[T] } // nil: nothing is held

// add appends an item that has just been admitted.
func (a *arrivals[T]) add(it *Item[T]) {
	if a.last == nil {
		a.first = it
	} else {
		it.older, a.last.newer = a.last, it
	}
	a.last = it
}

// remove takes out an item that leaves. A link that is nil already is not written: while
// the garbage collector marks, each pointer written costs.
func (a *arrivals[T]) remove(it *Item[T]) {
	older, newer := it.older, it.newer
	if older == nil {
		a.first = newer
	} else {
		older.newer, it.older = newer, nil
	}
	if newer == nil {
		a.last = older
	} else {
		newer.older, it.newer = older, nil
	}
}

// Oldest is the item that has been held the longest, whatever it does; nil: nothing is held.
func (s *Scheduler[T]) Oldest() *T {
	if s.arrivals.first == nil {
		return nil
	}
	return s.arrivals.first.Of
}
