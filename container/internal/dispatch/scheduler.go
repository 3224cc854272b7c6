package dispatch

// Limits bound what is held; see room.go.
type Limits struct {
	// Bytes is how much memory may be kept alive by what runs or could run. What is
	// parked has as much of its own, and what waits in lanes that stand has as well.
	Bytes int64
	// Retries is how many parked items take no place in the window.
	Retries int
	// Aside is how many items that wait in lanes that stand take no place in the window.
	Aside int
}

// Scheduler owns what a container holds. Its owner guards it with a mutex.
type Scheduler[T any] struct {
	key    func(*T) (key []byte, ok bool) // nil: no order
	limits Limits

	ready   ring[T]
	lanes   table[T]
	parked  heap[T]
	due     []*Item[T] // in the order in which they became due
	running []*Item[T] // in no order
	orphans []*Item[T] // taken because what was before them is lost; see lose.go

	held   [states]Sum    // items by what they do; Behind is split up below
	behind [standings]Sum // those behind others, by why their lane stands
	ended  uint64         // calls that have ended: the clock by which a lane hangs
	looked uint64         // ended, when all lanes were looked at last
	mean   int64          // bytes of an item, smoothed
}

// overtaken is how many calls per running one must have ended while a lane's first item
// runs, until the lane is said to hang. Calls of about the same length overtake each
// other about once; one that is overtaken eight times takes about eight times as long as
// the others. To be wrong costs little: a few more items are held while it runs.
const overtaken = 8

// meanAtFirst is what an item is expected to weigh before one was seen.
const meanAtFirst = 1024

// New makes a Scheduler. key names the lane of an item; ok is false for one that may run
// beside everything. The key is not kept. A nil key means no order at all.
func New[T any](limits Limits, key func(*T) (name []byte, ok bool)) *Scheduler[T] {
	return &Scheduler[T]{key: key, limits: limits, lanes: newTable[T](), mean: meanAtFirst}
}

// Admit takes items in that were received, in their order: each into its lane, or to the
// ready ones. They must have been filled.
func (s *Scheduler[T]) Admit(items ...*Item[T]) {
	for _, it := range items {
		it.owner.held++
		s.mean += (it.size - s.mean) / 8
		to := Ready
		if s.key != nil {
			to = s.enterLane(it)
		}
		it.state = to
		s.held[to].add(it.size)
		if to == Ready {
			s.ready.push(it)
		}
	}
}

// enterLane finds the item's lane and puts it behind the others there.
func (s *Scheduler[T]) enterLane(it *Item[T]) State {
	key, ok := s.key(it.Of)
	if !ok {
		return Ready
	}
	l, fresh := s.lanes.get(key)
	it.lane = l
	if fresh {
		return Ready
	}
	l.push(it)
	s.behind[l.standing].add(it.size)
	s.lookAt(l)
	return Behind
}

// lookAt sets a lane aside whose running item was overtaken too often.
func (s *Scheduler[T]) lookAt(l *lane[T]) {
	if l.standing == Open && l.running > 0 && s.ended-l.since >= overtaken*uint64(s.held[Running].N) {
		s.stand(l, Hung)
	}
}

// Relieve looks at all lanes again where a full window keeps everything from going on:
// what fills it came before its lane was overtaken. It reports whether there is room now.
func (s *Scheduler[T]) Relieve(window int) bool {
	if s.ready.n > 0 || s.behind[Open].N == 0 || s.looked == s.ended {
		return false
	}
	s.looked = s.ended
	for _, l := range s.lanes.all {
		s.lookAt(l)
	}
	return s.Room(window) > 0
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
		f := s.popBehind(l)
		s.begin(f)
		out = append(out, f)
	}
	return out
}

// begin marks an item as running that was taken off the place where it waited.
func (s *Scheduler[T]) begin(it *Item[T]) {
	s.move(it, Running)
	it.swept = false
	it.pos = len(s.running)
	s.running = append(s.running, it)
	if it.lane != nil {
		s.occupy(it.lane)
	}
}

// occupy makes a lane wait for one more of its items.
func (s *Scheduler[T]) occupy(l *lane[T]) {
	if l.running == 0 {
		l.since = s.ended
	}
	l.running++
}

// Finish lets items go that ran or were taken: their places are free and their lanes go
// on. They can be used again.
func (s *Scheduler[T]) Finish(items ...*Item[T]) {
	for _, it := range items {
		if it.state == Running {
			s.endRun(it)
		}
		l := it.lane
		s.forget(it)
		if l != nil {
			s.leave(l)
		}
	}
}

// endRun takes an item off the running ones.
func (s *Scheduler[T]) endRun(it *Item[T]) {
	s.ended++
	last := len(s.running) - 1
	moved := s.running[last]
	if moved != it {
		s.running[it.pos], moved.pos = moved, it.pos
	}
	s.running = s.running[:last] // items are used again: what stays behind pins nothing
}

// forget takes an item off the sums and its owner.
func (s *Scheduler[T]) forget(it *Item[T]) {
	s.held[it.state].sub(it.size)
	it.owner.held--
	it.clear()
}

// leave ends one of those that a lane waits for. The follower goes to the tail of the
// ready ones, so that a hot lane waits like everyone else.
func (s *Scheduler[T]) leave(l *lane[T]) {
	if l.running--; l.running == 0 {
		l.gap = false
		s.nextOf(l)
	}
}

// nextOf makes the lane's next item ready, or forgets the lane. One that a failed batch
// put back has its delay to wait for, and the lane with it.
func (s *Scheduler[T]) nextOf(l *lane[T]) {
	s.stand(l, Open)
	switch next := l.head; {
	case next == nil:
		s.lanes.drop(l)
	case !next.due.IsZero():
		s.popBehind(l)
		s.park(next)
	default:
		s.popBehind(l)
		l.mark = nil // it goes before the others that its batch put back, should it fail again
		s.move(next, Ready)
		s.ready.push(next)
	}
}

// popBehind takes the first one that waits off its lane's list.
func (s *Scheduler[T]) popBehind(l *lane[T]) *Item[T] {
	it := l.pop()
	s.behind[l.standing].sub(it.size)
	return it
}

// move changes an item's state, and the sums with it.
func (s *Scheduler[T]) move(it *Item[T], to State) {
	s.held[it.state].sub(it.size)
	s.held[to].add(it.size)
	it.state = to
}

// stand notes why a lane stands, or that it does not, and charges what waits in it to
// that account.
func (s *Scheduler[T]) stand(l *lane[T], why Standing) {
	from := &s.behind[l.standing]
	*from = from.minus(l.waiting)
	l.standing = why
	to := &s.behind[why]
	*to = to.plus(l.waiting)
}
