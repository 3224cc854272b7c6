package dispatch

import "time"

// Park puts a running item aside until its time has come. With an order the lane waits
// with it. While others of the same batch are not through, and where others of it were
// put back before, the item goes back into its lane: behind those, in front of what was
// not started.
func (s *Scheduler[T]) Park(it *Item[T], due time.Time) {
	s.endRun(it)
	it.due = due
	l := it.lane
	if l == nil {
		s.park(it)
		return
	}
	l.running--
	if l.running == 0 && l.mark == nil {
		l.gap = false
		s.park(it)
		return
	}
	l.insert(it)
	s.behind[l.standing].add(it.size)
	s.move(it, Behind)
	if l.running == 0 {
		l.gap = false
		s.nextOf(l)
	}
}

// park puts an item among those that wait for their time, and its lane with it.
func (s *Scheduler[T]) park(it *Item[T]) {
	if l := it.lane; l != nil {
		s.stand(l, Waiting)
	}
	s.move(it, Parked)
	s.parked.push(it)
}

// NextDue is when Wake has something to do next; false: nothing is parked.
func (s *Scheduler[T]) NextDue() (at time.Time, ok bool) {
	if len(s.parked) == 0 {
		return time.Time{}, false
	}
	return s.parked[0].due, true
}

// Wake lets everything go on whose time has come.
func (s *Scheduler[T]) Wake(now time.Time) {
	for len(s.parked) > 0 && !s.parked[0].due.After(now) {
		s.wake(s.parked.pop())
	}
}

// Unpark lets one item go on before its time. It reports false if the item is not
// parked.
func (s *Scheduler[T]) Unpark(it *Item[T]) bool {
	if it.state != Parked {
		return false
	}
	s.parked.remove(it)
	s.wake(it)
	return true
}

// wake lets an item go on that was taken off the heap.
func (s *Scheduler[T]) wake(it *Item[T]) {
	if it.Apart {
		s.move(it, Due)
		s.due = append(s.due, it)
		return
	}
	s.unblock(it)
	s.move(it, Ready)
	s.ready.push(it)
}

// unblock ends the standing of a lane whose first item waits no longer. What comes back
// of its next batch goes to the very front again.
func (s *Scheduler[T]) unblock(it *Item[T]) {
	if l := it.lane; l != nil {
		s.stand(l, Open)
		l.mark = nil
	}
}

// TakeDue starts the next one that waits for other hands; nil: none does.
func (s *Scheduler[T]) TakeDue() *Item[T] {
	if len(s.due) == 0 {
		return nil
	}
	it := s.due[0]
	s.due = append(s.due[:0], s.due[1:]...)
	s.unblock(it)
	s.begin(it)
	return it
}

// Hung is told of a running item whose handler takes far too long: its lane stands until
// it has ended.
func (s *Scheduler[T]) Hung(it *Item[T]) {
	if l := it.lane; l != nil && l.standing == Open && it.state == Running {
		s.stand(l, Hung)
	}
}
