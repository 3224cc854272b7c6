package dispatch

// When the broker takes a delivery back, it will deliver it again. Whatever is behind it
// in its lane must then come after it, so it goes back too: those are the orphans.

// lose lets go of what waits in lanes and is lost, and makes orphans of what is behind
// it. It appends the lost ones to gone.
func (ls *lanes[T]) lose(lost func(*T) bool, gone []*Item[T]) []*Item[T] {
	for _, l := range ls.table.all {
		gone = ls.loseIn(l, lost, gone)
	}
	return gone
}

func (ls *lanes[T]) loseIn(l *lane[T], lost func(*T) bool, gone []*Item[T]) []*Item[T] {
	broken, back := false, l.mark // those up to back are of the batch that is with a handler
	l.filter(func(it *Item[T]) bool {
		returned := back != nil
		if it == back {
			back = nil
		}
		switch {
		case lost(it.Of):
			broken = true
			l.gap = l.gap || returned && l.running > 0
			ls.sums.unqueue(l.standing, it.size)
			it.forget(ls.sums)
			gone = append(gone, it)
		case broken:
			ls.orphan(l, it)
		default:
			return true
		}
		return false
	})
	ls.measure(l)
	return gone
}

// loseRunning notes that the broker took a running item back: what is behind it are
// orphans, and what arrives from now on waits for two.
func (ls *lanes[T]) loseRunning(it *Item[T]) {
	it.swept = true
	ls.orphanAll(it.lane)
	ls.stand(it.lane, Lost)
}

// Orphan makes orphans of what is behind a running item that is lost, or that goes back
// because it comes behind a lost one.
func (ls *lanes[T]) Orphan(it *Item[T]) {
	ls.Tear(it)
	if it.lane == nil || it.swept {
		return // done when the loss was noted; what came since comes behind it again
	}
	ls.orphanAll(it.lane)
}

// Tear notes that one of the batch that is with a handler is lost. Those behind it in the
// batch that would be retried go to the broker too: tried again here, they would come
// before it.
func (ls *lanes[T]) Tear(it *Item[T]) {
	if l := it.lane; l != nil {
		l.gap = l.gap || l.running > 1
	}
}

// Torn says whether one of the item's batch is lost.
func (ls *lanes[T]) Torn(it *Item[T]) bool { return it.lane != nil && it.lane.gap }

// orphanAll takes out what waits in a lane, except what the batch that ends has put back.
func (ls *lanes[T]) orphanAll(l *lane[T]) {
	back := l.mark
	l.filter(func(it *Item[T]) bool {
		if back == nil {
			ls.orphan(l, it)
			return false
		}
		if it == back {
			back = nil
		}
		return true
	})
	ls.measure(l)
}

// orphan puts an item that was taken off its lane's list among those to be given back. A
// lane whose first one is ready or parked does not wait for it: it would go on with its
// next one when the orphan is gone, past that first one.
func (ls *lanes[T]) orphan(l *lane[T], it *Item[T]) {
	ls.sums.unqueue(l.standing, it.size)
	it.move(Taken, ls.sums)
	if l.running > 0 {
		ls.occupy(l)
	} else {
		it.lane = nil
	}
	ls.orphans = append(ls.orphans, it)
}

// TakeOrphans gives out those that have to go back because an earlier one is lost.
func (ls *lanes[T]) TakeOrphans() []*Item[T] {
	out := ls.orphans
	ls.orphans = nil
	return out
}

// Orphans says how many of them there are.
func (ls *lanes[T]) Orphans() int { return len(ls.orphans) }
