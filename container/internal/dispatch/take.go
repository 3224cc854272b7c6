package dispatch

// What goes back to the broker is taken out first and finished when it has gone: until
// then it keeps its place in its lane, so that nothing overtakes it.

// TakeOne starts an item that waits, out of turn: an operator wants it settled. One that
// waits behind others leaves its lane, which does not wait for it. It reports false if
// the item does not wait, or waits for other hands already.
func (s *Scheduler[T]) TakeOne(it *Item[T]) bool {
	switch it.state {
	case Parked:
		s.parked.remove(it)
		s.unblock(it)
	case Ready:
		s.ready.filter(func(o *Item[T]) bool { return o != it })
	case Behind:
		l := it.lane
		l.remove(it)
		s.behind[l.standing].sub(it.size)
		it.lane = nil
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
	for len(s.parked) > 0 {
		it := s.parked.pop()
		s.unblock(it)
		out = s.takeLane(out, it)
	}
	return out
}

// TakeWaiting takes everything that waits but the followers of what runs: first what has
// waited for its time, by that time, then what is ready.
func (s *Scheduler[T]) TakeWaiting() (out []*Item[T]) {
	for _, it := range s.due {
		s.move(it, Parked)
		s.parked.push(it)
	}
	s.due = nil
	out = s.TakeParked()
	for s.ready.n > 0 {
		out = s.takeLane(out, s.ready.pop())
	}
	return out
}

// takeLane takes the first item of a lane, and those behind it.
func (s *Scheduler[T]) takeLane(out []*Item[T], it *Item[T]) []*Item[T] {
	s.move(it, Taken)
	out = append(out, it)
	l := it.lane
	if l == nil {
		return out
	}
	s.occupy(l)
	for l.head != nil {
		f := s.popBehind(l)
		s.move(f, Taken)
		s.occupy(l)
		out = append(out, f)
	}
	return out
}

// TakeOrphans gives out those that have to go back because what was before them is lost;
// see lose.go.
func (s *Scheduler[T]) TakeOrphans() []*Item[T] {
	out := s.orphans
	s.orphans = nil
	return out
}

// Orphans says how many of them there are.
func (s *Scheduler[T]) Orphans() int { return len(s.orphans) }
