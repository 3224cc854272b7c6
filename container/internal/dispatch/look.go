package dispatch

import "iter"

// All goes over everything that is held but what is taken: first what runs, then what
// waits for its time, for other hands, for a worker, and for others. Nothing may change
// meanwhile.
func (s *Scheduler[T]) All() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		for it := range s.Begun() {
			if !yield(it) {
				return
			}
		}
		for i := range s.ready.n {
			if !yield(s.ready.at(i)) {
				return
			}
		}
		for _, l := range s.lanes.all {
			for it := l.head; it != nil; it = it.next {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// Begun goes over what runs or has run: it is parked, or waits for other hands. Of these
// there are few, where All can be long.
func (s *Scheduler[T]) Begun() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		for _, list := range [][]*Item[T]{s.running, s.parked, s.due} {
			for _, it := range list {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// LaneInfo describes a lane.
type LaneInfo struct {
	// Key is the lane's name; it must not be kept.
	Key []byte
	// Standing is why what waits in it cannot go on.
	Standing Standing
	// Waiting is how many wait in it.
	Waiting int
}

// Lanes is how many lanes there are.
func (s *Scheduler[T]) Lanes() int { return len(s.lanes.all) }

// Longest describes the lane in which the most wait among those for which of is true;
// false: there is none. of nil: among all.
func (s *Scheduler[T]) Longest(of func(Standing) bool) (info LaneInfo, ok bool) {
	for _, l := range s.lanes.all {
		if (of == nil || of(l.standing)) && (!ok || l.waiting.N > info.Waiting) {
			info, ok = LaneInfo{l.key, l.standing, l.waiting.N}, true
		}
	}
	return info, ok
}

// Abreast is how many items could run beside each other: lanes that wait for no time, and
// items without a lane.
func (s *Scheduler[T]) Abreast() int {
	n := 0
	for _, l := range s.lanes.all {
		if l.standing != Waiting {
			n++
		}
	}
	for i := range s.ready.n {
		if s.ready.at(i).lane == nil {
			n++
		}
	}
	for _, it := range s.running {
		if it.lane == nil {
			n++
		}
	}
	return n
}

// HeadOf is the parked item that the others of its lane wait for; nil: they wait for no
// time.
func (s *Scheduler[T]) HeadOf(it *Item[T]) *Item[T] {
	for _, p := range s.parked {
		if p.lane == it.lane && it.lane != nil {
			return p
		}
	}
	return nil
}
