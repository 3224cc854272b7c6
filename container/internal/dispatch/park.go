package dispatch

import "time"

// Park puts a running item aside until its time has come. With an order the lane waits
// with it. While others of the same batch have not ended, and where others of it were put
// back before, the item goes back into its lane: behind those, in front of what was not
// started.
func (s *Scheduler[T]) Park(it *Item[T], due time.Time) {
	s.endRun(it)
	it.due = due
	l := it.lane
	if l == nil {
		s.parking.put(it)
		return
	}
	if s.lanes.endOnly(l) {
		s.park(it)
		return
	}
	s.lanes.insert(it)
	s.goOn(s.lanes.release(l))
}

// park makes an item wait for its time, and its lane with it.
func (s *Scheduler[T]) park(it *Item[T]) {
	if l := it.lane; l != nil {
		s.lanes.stand(l, Waiting)
	}
	s.parking.put(it)
}

// Wake lets everything go on whose time has come.
func (s *Scheduler[T]) Wake(now time.Time) {
	for it := s.parking.next(now); it != nil; it = s.parking.next(now) {
		s.wake(it)
	}
}

// Unpark lets one item go on before its time. It reports false if the item is not
// parked.
func (s *Scheduler[T]) Unpark(it *Item[T]) bool {
	if it.state != Parked {
		return false
	}
	s.parking.parked.remove(it)
	s.wake(it)
	return true
}

// wake lets an item go on that was taken off the heap.
func (s *Scheduler[T]) wake(it *Item[T]) {
	if it.Apart {
		s.parking.setDue(it)
		return
	}
	s.lanes.unblock(it)
	s.makeReady(it)
}

// TakeDue starts the next item that is due and not for a worker; nil: there is none.
func (s *Scheduler[T]) TakeDue() *Item[T] {
	it := s.parking.popDue()
	if it != nil {
		s.lanes.unblock(it)
		s.begin(it)
	}
	return it
}
