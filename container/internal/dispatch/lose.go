package dispatch

// What the broker takes back comes again. Whatever is behind it in its lane must come
// again behind it, so it goes back too: those are the orphans.

// Lose lets go of everything that waits and is lost, and makes orphans of what is behind
// it or behind a running one that is lost. It returns those that have left, which can be
// used again. lost is asked for every item but those taken.
func (s *Scheduler[T]) Lose(lost func(*T) bool) (gone []*Item[T]) {
	for _, l := range s.lanes.all {
		gone = s.loseBehind(l, lost, gone)
	}
	for _, it := range s.running {
		if it.lane != nil && !it.swept && lost(it.Of) {
			it.swept = true
			s.orphanAll(it.lane)
			s.stand(it.lane, Lost) // what arrives from now on waits for two
		}
	}
	for _, it := range s.detachLost(lost) {
		s.loseHead(it)
		gone = append(gone, it)
	}
	return gone
}

// detachLost takes the lost ones off the places where the first of lanes wait.
func (s *Scheduler[T]) detachLost(lost func(*T) bool) (heads []*Item[T]) {
	keep := func(it *Item[T]) bool {
		if !lost(it.Of) {
			return true
		}
		heads = append(heads, it)
		return false
	}
	s.ready.filter(keep)
	var stay heap[T]
	for _, it := range s.parked {
		if keep(it) {
			stay.push(it)
		}
	}
	var due []*Item[T]
	for _, it := range s.due { // other hands may be busy for long
		if keep(it) {
			due = append(due, it)
		}
	}
	s.parked, s.due = stay, due
	return heads
}

// loseBehind is that for what waits in a lane.
func (s *Scheduler[T]) loseBehind(l *lane[T], lost func(*T) bool, gone []*Item[T]) []*Item[T] {
	broken, back := false, l.mark // those up to back are of the batch which is with a handler
	l.filter(func(it *Item[T]) bool {
		returned := back != nil
		if it == back {
			back = nil
		}
		switch {
		case lost(it.Of):
			broken = true
			l.gap = l.gap || returned && l.running > 0
			s.behind[l.standing].sub(it.size)
			s.forget(it)
			gone = append(gone, it)
		case broken:
			s.orphan(l, it)
		default:
			return true
		}
		return false
	})
	return gone
}

// loseHead lets go of the first item of a lane, which was taken off its place, and of
// its followers.
func (s *Scheduler[T]) loseHead(it *Item[T]) {
	s.unblock(it)
	if l := it.lane; l != nil {
		s.occupy(l) // the lane must outlive its orphans
		s.orphanAll(l)
	}
	s.Finish(it)
}

// LoseFront lets go of the item whose turn it is, which turned out to be lost.
func (s *Scheduler[T]) LoseFront() *Item[T] {
	it := s.ready.pop()
	s.loseHead(it)
	return it
}

// Orphan makes orphans of what is behind a running item that is lost, or that goes back
// because it comes behind a lost one.
func (s *Scheduler[T]) Orphan(it *Item[T]) {
	s.Tear(it)
	if it.lane == nil || it.swept {
		return // done when the loss was heard of; what came since comes behind it again
	}
	s.orphanAll(it.lane)
}

// Tear notes that one of the batch which is with a handler is lost. Those behind it in
// the batch that come back go to the broker too: tried again here, they would come before
// it.
func (s *Scheduler[T]) Tear(it *Item[T]) {
	if l := it.lane; l != nil {
		l.gap = l.gap || l.running > 1
	}
}

// Torn says whether one of the item's batch is lost.
func (s *Scheduler[T]) Torn(it *Item[T]) bool { return it.lane != nil && it.lane.gap }

// orphanAll takes out what waits in a lane, but what the batch that ends has put back.
func (s *Scheduler[T]) orphanAll(l *lane[T]) {
	back := l.mark
	l.filter(func(it *Item[T]) bool {
		if back == nil {
			s.orphan(l, it)
			return false
		}
		if it == back {
			back = nil
		}
		return true
	})
}

// orphan puts an item that was taken off its lane's list among those to be given back. A
// lane whose first one is ready or parked does not wait for it: it would go on with its
// next one when the orphan is gone, past that first one.
func (s *Scheduler[T]) orphan(l *lane[T], it *Item[T]) {
	s.behind[l.standing].sub(it.size)
	s.move(it, Taken)
	if l.running > 0 {
		s.occupy(l)
	} else {
		it.lane = nil
	}
	s.orphans = append(s.orphans, it)
}
