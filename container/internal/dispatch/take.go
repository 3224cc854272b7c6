package dispatch

// What goes back to the broker is taken out first and finished when it has gone: until
// then it keeps its place in its lane, so that nothing overtakes it.

// TakeOne starts an item that waits, out of turn: an operator wants it settled. One that
// waits behind others leaves its lane, which does not wait for it. It reports false if
// the item does not wait, or is due already.
func (s *Scheduler[T]) TakeOne(it *Item[T]) bool {
	switch it.state {
	case Parked:
		s.parking.parked.remove(it)
		s.lanes.unblock(it)
	case Ready:
		s.ready.filter(func(o *Item[T]) bool { return o != it })
	case Behind:
		s.lanes.remove(it)
	default:
		return false
	}
	s.begin(it)
	return true
}

// TakeReady takes the ready items of an owner with all that wait behind them, in order.
func (s *Scheduler[T]) TakeReady(of *Owner) (out []*Item[T]) {
	var heads []*Item[T]
	s.ready.filter(func(it *Item[T]) bool {
		if it.owner == of {
			heads = append(heads, it)
		}
		return it.owner != of
	})
	for _, it := range heads {
		out = s.takeLane(out, it)
	}
	return out
}

// TakeParked takes what is parked, by its time, with all that wait behind it.
func (s *Scheduler[T]) TakeParked() (out []*Item[T]) {
	for len(s.parking.parked) > 0 {
		it := s.parking.parked.pop()
		s.lanes.unblock(it)
		out = s.takeLane(out, it)
	}
	return out
}

// TakeWaiting takes everything that waits except the followers of what runs: first what
// has waited for its time, by that time, then what is ready.
func (s *Scheduler[T]) TakeWaiting() (out []*Item[T]) {
	s.parking.putBack()
	out = s.TakeParked()
	for s.ready.n > 0 {
		out = s.takeLane(out, s.ready.pop())
	}
	return out
}

// takeLane takes the first item of a lane, and those behind it.
func (s *Scheduler[T]) takeLane(out []*Item[T], it *Item[T]) []*Item[T] {
	it.move(Taken, &s.ledger)
	out = append(out, it)
	l := it.lane
	if l == nil {
		return out
	}
	s.lanes.occupy(l)
	for f := s.lanes.pop(l); f != nil; f = s.lanes.pop(l) {
		f.move(Taken, &s.ledger)
		s.lanes.occupy(l)
		out = append(out, f)
	}
	return out
}
