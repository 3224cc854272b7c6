package dispatch

import "iter"

// All goes over everything that is held except what is taken: first what runs, then what
// waits for its time, for a worker, and for others. Nothing may change meanwhile.
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
		for _, l := range s.lanes.table.all {
			for it := l.head; it != nil; it = it.next {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// Begun goes over what runs or has run: running, parked and due items. There are few of
// these, where All can be long.
func (s *Scheduler[T]) Begun() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		for _, list := range [][]*Item[T]{s.running.items, s.parking.parked, s.parking.due} {
			for _, it := range list {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// Abreast is how many items could run in parallel: one of each lane that waits for no
// time, and items without a lane.
func (s *Scheduler[T]) Abreast() int {
	n := 0
	for _, l := range s.lanes.table.all {
		if l.standing != Waiting {
			n++
		}
	}
	for i := range s.ready.n {
		if s.ready.at(i).lane == nil {
			n++
		}
	}
	for _, it := range s.running.items {
		if it.lane == nil {
			n++
		}
	}
	return n
}
