package dispatch

// Lose lets go of everything that waits and is lost, and makes orphans of what is behind
// it or behind a running one that is lost. It returns those that have left, which can be
// used again. lost is called for every item except those taken.
func (s *Scheduler[T]) Lose(lost func(*T) bool) []*Item[T] {
	gone := s.lanes.lose(lost, nil)
	for _, it := range gone {
		s.arrivals.remove(it)
	}
	for _, it := range s.running.items {
		if it.lane != nil && !it.swept && lost(it.Of) {
			s.lanes.loseRunning(it)
		}
	}
	for _, it := range s.detachLost(lost) {
		s.loseHead(it)
		gone = append(gone, it)
	}
	return gone
}

// detachLost takes the lost ones off the places where the first items of lanes wait.
func (s *Scheduler[T]) detachLost(lost func(*T) bool) (heads []*Item[T]) {
	keep := func(it *Item[T]) bool {
		if !lost(it.Of) {
			return true
		}
		heads = append(heads, it)
		return false
	}
	s.ready.filter(keep)
	s.parking.filter(keep)
	return heads
}

// loseHead lets go of the first item of a lane, which was taken off its place, and of
// its followers.
func (s *Scheduler[T]) loseHead(it *Item[T]) {
	s.lanes.unblock(it)
	if l := it.lane; l != nil {
		s.lanes.occupy(l) // the lane must outlive its orphans
		s.lanes.orphanAll(l)
	}
	s.Finish(it)
}

// LoseFront lets go of the item whose turn it is, which turned out to be lost.
func (s *Scheduler[T]) LoseFront() *Item[T] {
	it := s.ready.pop()
	s.loseHead(it)
	return it
}
