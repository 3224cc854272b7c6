package dispatch

import "time"

// parking owns the items that wait for their time, and those whose time has come but
// which no worker may start.
type parking[T any] struct {
	sums   *ledger    // charged for what is parked
	parked heap[T]    // the first due on top
	due    []*Item[T] // of those that continue apart, in the order in which they became due
}

// put parks an item until its time.
func (p *parking[T]) put(it *Item[T]) {
	it.move(Parked, p.sums)
	p.parked.push(it)
}

// putBack parks those again that are due, so that they are taken by their time.
func (p *parking[T]) putBack() {
	for _, it := range p.due {
		p.put(it)
	}
	p.due = nil
}

// next takes out the first item whose time has come; nil: none has.
func (p *parking[T]) next(now time.Time) *Item[T] {
	if at, ok := p.NextDue(); !ok || at.After(now) {
		return nil
	}
	return p.parked.pop()
}

// setDue keeps an item whose time has come until TakeDue.
func (p *parking[T]) setDue(it *Item[T]) {
	it.move(Due, p.sums)
	p.due = append(p.due, it)
}

// popDue takes out the one that is due longest; nil: none is.
func (p *parking[T]) popDue() *Item[T] {
	if len(p.due) == 0 {
		return nil
	}
	it := p.due[0]
	p.due = append(p.due[:0], p.due[1:]...)
	return it
}

// filter keeps the items for which keep is true; the caller looks after the others.
func (p *parking[T]) filter(keep func(*Item[T]) bool) {
	var stay heap[T]
	for _, it := range p.parked {
		if keep(it) {
			stay.push(it)
		}
	}
	var due []*Item[T]
	for _, it := range p.due { // they can be due for long
		if keep(it) {
			due = append(due, it)
		}
	}
	p.parked, p.due = stay, due
}

// NextDue is when Wake has something to do next; false: nothing is parked.
func (p *parking[T]) NextDue() (at time.Time, ok bool) {
	if len(p.parked) == 0 {
		return time.Time{}, false
	}
	return p.parked[0].due, true
}

// HeadOf is the parked item that the others of its lane wait for; nil: they wait for no
// time.
func (p *parking[T]) HeadOf(it *Item[T]) *Item[T] {
	for _, parked := range p.parked {
		if parked.lane == it.lane && it.lane != nil {
			return parked
		}
	}
	return nil
}
