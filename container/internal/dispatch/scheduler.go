package dispatch

// Scheduler owns what a container holds. It composes the parts below, each of which owns
// its fields: an item is in one of them, and the Scheduler moves it from one to the next.
// Its owner guards it with a mutex.
type Scheduler[T any] struct {
	ledger                 // every sum, and how much more fits
	lanes[T]               // what waits behind others, and what is orphaned
	parking[T]             // what waits for its time
	ready      ring[T]     // what waits for a worker, in the order in which it became ready
	running    running[T]  // what a handler has, or a verdict is being carried out for
	arrivals   arrivals[T] // all of them by their age
}

// New makes a Scheduler. key names the lane of an item; ok is false for one that may run
// in parallel to everything. The key is not kept. A nil key means no order at all.
func New[T any](limits Limits, key func(*T) (name []byte, ok bool)) *Scheduler[T] {
	s := &Scheduler[T]{ledger: ledger{limits: limits, mean: meanAtFirst}}
	s.lanes = lanes[T]{key: key, sums: &s.ledger, table: newTable[T]()}
	s.parking.sums = &s.ledger
	return s
}

// Admit takes items in that were received, in their order: each into its lane, or to the
// ready ones. They must have been filled.
func (s *Scheduler[T]) Admit(items ...*Item[T]) {
	for _, it := range items {
		it.owner.held++
		s.arrivals.add(it)
		to := Ready
		if s.lanes.key != nil {
			to = s.lanes.enter(it)
		}
		it.state = to
		s.ledger.enter(to, it.size)
		if to == Ready {
			s.ready.push(it)
		}
	}
}

// Front is the item whose turn it is; nil: nothing is ready.
func (s *Scheduler[T]) Front() *Item[T] {
	if s.ready.n == 0 {
		return nil
	}
	return s.ready.front()
}

// Next starts the item whose turn it is and, for a batch, those behind it in its lane,
// at most n together. It appends them to out, in their order.
func (s *Scheduler[T]) Next(n int, out []*Item[T]) []*Item[T] {
	if s.ready.n == 0 {
		return out
	}
	it := s.ready.pop()
	s.begin(it)
	out = append(out, it)
	l := it.lane
	if l == nil || it.Alone {
		return out
	}
	for n--; n > 0 && l.head != nil && l.head.joins(); n-- {
		f := s.lanes.pop(l)
		s.begin(f)
		out = append(out, f)
	}
	return out
}

// begin runs an item that was taken off the place where it waited.
func (s *Scheduler[T]) begin(it *Item[T]) {
	it.move(Running, &s.ledger)
	it.swept = false
	s.running.add(it)
	if it.lane != nil {
		s.lanes.occupy(it.lane)
	}
}

// Resize notes that what a running item keeps alive has become larger by more since it was
// received, as when its body was unpacked. It is its old size again when its run ends.
func (s *Scheduler[T]) Resize(it *Item[T], more int64) {
	if it.state != Running || it.grown == more {
		return
	}
	s.ledger.resize(it.grown, more)
	it.size += more - it.grown
	it.grown = more
}

// endRun takes an item off the running ones.
func (s *Scheduler[T]) endRun(it *Item[T]) {
	s.Resize(it, 0)
	s.lanes.ended++
	s.running.remove(it)
}

// Finish lets items go that ran or were taken: their places are free and their lanes go
// on. They can be used again.
func (s *Scheduler[T]) Finish(items ...*Item[T]) {
	for _, it := range items {
		if it.state == Running {
			s.endRun(it)
		}
		l := it.lane
		s.arrivals.remove(it)
		it.forget(&s.ledger)
		if l != nil {
			s.goOn(s.lanes.release(l))
		}
	}
}

// goOn continues a lane with its next item, which goes to the tail of the ready ones, so
// that a busy lane waits like everyone else. One that a failed batch put back has its
// delay to wait for, and the lane with it.
func (s *Scheduler[T]) goOn(next *Item[T]) {
	switch {
	case next == nil:
	case next.due.IsZero():
		s.makeReady(next)
	default:
		s.park(next)
	}
}

func (s *Scheduler[T]) makeReady(it *Item[T]) {
	it.move(Ready, &s.ledger)
	s.ready.push(it)
}
