package dispatch

// lanes owns the lanes: what waits in each, why one is blocked, and the items that must go
// back to the broker because an earlier one of their lane was lost.
type lanes[T any] struct {
	key     func(*T) (name []byte, ok bool) // names an item's lane; nil: no order at all
	sums    *ledger                         // charged for what waits in lanes
	table   table[T]                        // the lanes by name
	orphans []*Item[T]                      // taken because an earlier one of their lane is lost; see lose.go
	ended   uint64                          // runs that have ended: the clock by which a lane hangs
	looked  uint64                          // ended, when all lanes were looked at last

	longestOpen    longest[T] // of the lanes that go on: a busy key
	longestBlocked longest[T] // of the others: where most waits behind a hung call
}

// overtaken is how many runs per running item must have ended while a lane's first item
// runs, until the lane counts as hung. Runs of about the same length overtake each other
// about once; one that is overtaken eight times takes about eight times as long as the
// others. To be wrong costs little: a few more items are held while it runs.
const overtaken = 8

// enter finds the item's lane and puts it behind the others there. It returns the state
// in which the item begins.
func (ls *lanes[T]) enter(it *Item[T]) State {
	key, ok := ls.key(it.Of)
	if !ok {
		return Ready
	}
	l, fresh := ls.table.get(key)
	it.lane = l
	if fresh {
		return Ready
	}
	l.push(it)
	ls.sums.queue(l.standing, it.size)
	ls.measure(l)
	ls.lookAt(l)
	return Behind
}

// lookAt sets a lane aside whose running item was overtaken too often.
func (ls *lanes[T]) lookAt(l *lane[T]) {
	if l.standing == Open && l.running > 0 && ls.ended-l.since >= overtaken*uint64(ls.sums.held[Running].N) {
		ls.stand(l, Hung)
	}
}

// Relieve looks at all lanes again when a full window keeps everything from going on: its
// items came before their lane was overtaken. It reports whether there is room now.
func (ls *lanes[T]) Relieve(window int) bool {
	if ls.sums.Ready() > 0 || ls.sums.Behind(Open).N == 0 || ls.looked == ls.ended {
		return false
	}
	ls.looked = ls.ended
	for _, l := range ls.table.all {
		ls.lookAt(l)
	}
	return ls.sums.Room(window) > 0
}

// Hung notes that the handler of a running item takes far too long: its lane is blocked
// until it has ended.
func (ls *lanes[T]) Hung(it *Item[T]) {
	if l := it.lane; l != nil && l.standing == Open && it.state == Running {
		ls.stand(l, Hung)
	}
}

// occupy makes a lane wait for one more of its items.
func (ls *lanes[T]) occupy(l *lane[T]) {
	if l.running == 0 {
		l.since = ls.ended
	}
	l.running++
}

// release ends one of those that a lane waits for. It returns the item with which the
// lane goes on, if it was the last; a lane without one is dropped.
func (ls *lanes[T]) release(l *lane[T]) *Item[T] {
	if l.running--; l.running > 0 {
		return nil
	}
	l.gap = false
	ls.stand(l, Open)
	next := ls.pop(l)
	switch {
	case next == nil:
		ls.table.drop(l)
	case next.due.IsZero():
		l.mark = nil // it goes before the others that its batch put back, should it fail again
	}
	return next
}

// endOnly ends the run of the only item that a lane waits for, unless its batch put others
// back, which come before it.
func (ls *lanes[T]) endOnly(l *lane[T]) bool {
	if l.running > 1 || l.mark != nil {
		return false
	}
	l.running, l.gap = 0, false
	return true
}

// pop takes the first one that waits off its lane's list; nil: none does.
func (ls *lanes[T]) pop(l *lane[T]) *Item[T] {
	it := l.pop()
	if it != nil {
		ls.sums.unqueue(l.standing, it.size)
		ls.measure(l)
	}
	return it
}

// insert puts an item that ran back into its lane, in front of what was not started.
func (ls *lanes[T]) insert(it *Item[T]) {
	l := it.lane
	l.insert(it)
	ls.sums.queue(l.standing, it.size)
	ls.measure(l)
	it.move(Behind, ls.sums)
}

// remove takes an item that waits out of its lane, which does not wait for it.
func (ls *lanes[T]) remove(it *Item[T]) {
	l := it.lane
	l.remove(it)
	ls.sums.unqueue(l.standing, it.size)
	ls.measure(l)
	it.lane = nil
}

// stand notes why a lane is blocked, or that it is not, and charges what waits in it to
// that account.
func (ls *lanes[T]) stand(l *lane[T], why Standing) {
	ls.sums.recharge(l.standing, why, l.waiting)
	l.standing = why
	ls.measure(l)
}

// unblock opens a lane whose first item waits no longer. What comes back of its next
// batch goes to the very front again.
func (ls *lanes[T]) unblock(it *Item[T]) {
	if l := it.lane; l != nil {
		ls.stand(l, Open)
		l.mark = nil
	}
}

// Lanes is how many lanes there are.
func (ls *lanes[T]) Lanes() int { return len(ls.table.all) }
