package dispatch

// Every lane has its own account. What waits behind a first item that goes on takes
// places in the window, like what is ready or runs: it will need a worker soon. Once the
// lane stands, for whatever reason, its followers take none, so that the places are left
// to the lanes that go on. Only when what is set aside has used up its own space, which
// bounds memory, does the rest take from the window again.

// Room is how many more items fit into a window of so many places; negative: so many are
// too many.
func (s *Scheduler[T]) Room(window int) int {
	room := window - s.InWindow()
	if s.held[Parked].N+s.held[Due].N+s.held[Behind].N == 0 { // nearly always
		return room
	}
	return room - max(s.Retries().N-s.limits.Retries, 0) - max(s.Aside().N-s.limits.Aside, 0)
}

// Free is how many more items may be received: as many as there is room for, by their
// number and by their bytes. One larger item alone is let through.
func (s *Scheduler[T]) Free(window int) int {
	left := s.limits.Bytes - s.Bytes() - max(s.Aside().Bytes-s.limits.Bytes, 0)
	if left <= 0 {
		return 0
	}
	// How large the next ones are is not known: as large as the last ones.
	return min(s.Room(window), int(max(left/max(s.mean, 1), 1)))
}

// LimitAside changes how many items that wait in lanes that stand take no place in the
// window.
func (s *Scheduler[T]) LimitAside(n int) { s.limits.Aside = n }

// RetriesFull says whether the space for parked items is used up.
func (s *Scheduler[T]) RetriesFull() bool {
	r := s.Retries()
	return r.N >= s.limits.Retries || r.Bytes >= s.limits.Bytes
}

// AsideShare is how much of the space for what waits in lanes that stand is used, 0 to 1
// and beyond.
func (s *Scheduler[T]) AsideShare() float64 {
	a := s.Aside()
	return max(float64(a.N)/float64(s.limits.Aside), float64(a.Bytes)/float64(s.limits.Bytes))
}

// InWindow is how many items take a place: those that are ready, run or are taken, and
// the followers in lanes that go on.
func (s *Scheduler[T]) InWindow() int {
	return s.held[Ready].N + s.held[Running].N + s.held[Taken].N + s.behind[Open].N
}

// Bytes is what those in the window keep alive.
func (s *Scheduler[T]) Bytes() int64 {
	return s.held[Ready].Bytes + s.held[Running].Bytes + s.held[Taken].Bytes + s.behind[Open].Bytes
}

// Retries is what waits for its time, or for other hands after it.
func (s *Scheduler[T]) Retries() Sum { return s.held[Parked].plus(s.held[Due]) }

// Behind is what waits in lanes that stand for one reason; [Open]: in those that go on.
func (s *Scheduler[T]) Behind(why Standing) Sum { return s.behind[why] }

// Aside is what waits in lanes that stand, for whatever reason.
func (s *Scheduler[T]) Aside() Sum { return s.held[Behind].minus(s.behind[Open]) }

// Beside is how many items are held beside the window: what is parked, with what waits in
// lanes that stand.
func (s *Scheduler[T]) Beside() int { return s.Retries().N + s.Aside().N }

// Ready is how many items wait for nothing but a worker.
func (s *Scheduler[T]) Ready() int { return s.ready.n }

// Active is how many run or are on their way back to the broker: a drain waits for them.
func (s *Scheduler[T]) Active() int { return s.held[Running].N + s.held[Taken].N }

// Waiting is how many are due and wait for other hands.
func (s *Scheduler[T]) Waiting() int { return len(s.due) }

// Total is everything that is held.
func (s *Scheduler[T]) Total() (all Sum) {
	for _, sum := range s.held {
		all = all.plus(sum)
	}
	return all
}

// Mean is how many bytes an item keeps alive, smoothed.
func (s *Scheduler[T]) Mean() int64 { return s.mean }
