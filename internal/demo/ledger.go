package demo

import (
	"sync"
	"time"
)

// ledger knows each order of one broker by its number, independent of what broker
// and container say about it.
type ledger struct {
	mu     sync.Mutex
	orders []order
	ends   int // successful handler calls, the clock of order
	calls  int
	open   int // confirmed, neither handled nor rejected
	lost   int // handler calls whose delivery was lost meanwhile
	unsure int // settlements without confirmation
	missed int // events that were dropped
	last   time.Time
	pause  time.Duration // the longest time between two orders that were done
}

type order struct {
	key       int
	poison    bool
	flaky     bool
	confirmed bool
	calls     int
	done      int // handler calls that succeeded
	first     int // position of the first success; 0 = none
	settled   int // settlements accepted and carried out
	rejected  bool
	dead      int // copies found in the dead-letter destination
	left      bool
}

// add makes the next order and returns its number.
func (l *ledger) add(o order) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders = append(l.orders, o)
	return len(l.orders) - 1
}

// confirm notes that the broker has the order.
func (l *ledger) confirm(n int) {
	l.change(n, func(o *order) { o.confirmed = true })
}

// begin notes a handler call. It reports how many calls the order has had and
// whether it is to fail.
func (l *ledger) begin(n int) (fail bool) {
	l.mu.Lock()
	l.calls++
	l.mu.Unlock()
	l.change(n, func(o *order) {
		o.calls++
		fail = o.flaky && o.calls == 1
	})
	return fail
}

// done notes a handler call that succeeded.
func (l *ledger) done(n int) {
	now := time.Now()
	l.change(n, func(o *order) {
		if !l.last.IsZero() {
			l.pause = max(l.pause, now.Sub(l.last))
		}
		l.last = now
		l.ends++
		if o.done++; o.done == 1 {
			o.first = l.ends
		}
	})
}

// longestPause is the longest time in which no order was done.
func (l *ledger) longestPause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause
}

// settled notes an accepted settlement (+1) or one that was not carried out (−1).
func (l *ledger) settled(n, by int) { l.change(n, func(o *order) { o.settled += by }) }

// rejected notes that the container has dead-lettered the order.
func (l *ledger) rejected(n int) { l.change(n, func(o *order) { o.rejected = true }) }

// dead notes a copy in the dead-letter destination.
func (l *ledger) dead(n int) { l.change(n, func(o *order) { o.dead++ }) }

// left notes that the order is still in its queue.
func (l *ledger) left(n int) { l.change(n, func(o *order) { o.left = true }) }

// lose notes that a delivery was taken back while its handler ran.
func (l *ledger) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
}

// unsettled notes an accepted settlement that the broker did not confirm.
func (l *ledger) unsettled(n int) {
	l.settled(n, -1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsure++
}

func (l *ledger) losses() (lost, unsure int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.unsure
}

func (l *ledger) drop(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed += n
}

// change applies f and keeps the count of open orders. An order that arrived
// although its confirmation was lost counts as published from then on.
func (l *ledger) change(n int, f func(*order)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n >= len(l.orders) {
		return
	}
	o := &l.orders[n]
	was := o.isOpen()
	f(o)
	switch is := o.isOpen(); {
	case is && !was:
		l.open++
	case was && !is:
		l.open--
	}
}

func (o *order) isOpen() bool { return o.confirmed && o.done == 0 && !o.rejected && !o.left }

func (o *order) seen() bool { return o.calls > 0 || o.dead > 0 || o.left }

// waiting is how many confirmed orders are neither handled nor dead-lettered.
func (l *ledger) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// progress is how often a handler was called.
func (l *ledger) progress() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// unseen lists what should be in the dead-letter destination and was not found there.
func (l *ledger) unseen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for i := range l.orders {
		if l.orders[i].rejected && l.orders[i].dead == 0 {
			n++
		}
	}
	return n
}

// Count is what became of the orders of one broker.
type Count struct {
	Published   int `json:"published"` // confirmed, or arrived although the confirmation was lost
	Handled     int `json:"handled"`
	Dead        int `json:"dead"`
	Redelivered int `json:"redelivered"` // handler calls beyond the first of each order
	Left        int `json:"left"`        // still in the queue when it was over
	Lost        int `json:"lost"`
	Twice       int `json:"settled_twice"`
	Inverted    int `json:"out_of_order"`

	// The numbers of the first ten.
	LostIDs     []int `json:"lost_ids,omitempty"`
	TwiceIDs    []int `json:"settled_twice_ids,omitempty"`
	InvertedIDs []int `json:"out_of_order_ids,omitempty"`
	// Missed is how many events the ledger did not hear of: if any, settled twice
	// may be too high.
	Missed int `json:"events_missed,omitempty"`

	// Abandoned is what a stop at once left undone, with the first ten: those whose
	// handlers were cut off before the others.
	Abandoned    int   `json:"abandoned,omitempty"`
	AbandonedIDs []int `json:"abandoned_ids,omitempty"`
}

// count compares the sets; call it when everything is idle.
func (l *ledger) count() Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Count{Missed: l.missed}
	latest := map[int]int{}
	for n := range l.orders {
		o := &l.orders[n]
		if !o.confirmed && !o.seen() {
			continue
		}
		c.Published++
		c.Redelivered += max(o.calls-1, 0)
		switch {
		case o.done > 0:
			c.Handled++
		case o.dead > 0:
			c.Dead++
		case o.left:
			c.Left++
		default:
			c.Lost++
			note(&c.LostIDs, n)
		}
		if o.settled > 1 || (o.done > 0 && o.dead > 0) {
			c.Twice++
			note(&c.TwiceIDs, n)
		}
		if o.first == 0 {
			continue
		}
		if o.first < latest[o.key] {
			c.Inverted++
			note(&c.InvertedIDs, n)
		}
		latest[o.key] = max(latest[o.key], o.first)
	}
	return c
}

// stopped corrects the count of a demo that was stopped at once: orders that were not looked for
// are not lost.
func (l *ledger) stopped(c Count) Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Lost, c.LostIDs = 0, nil
	for _, begun := range []bool{true, false} {
		for n := range l.orders {
			if o := &l.orders[n]; o.isOpen() && (o.calls > 0) == begun {
				c.Abandoned++
				note(&c.AbandonedIDs, n)
			}
		}
	}
	return c
}

func note(ids *[]int, n int) {
	if len(*ids) < 10 {
		*ids = append(*ids, n)
	}
}

// Bad reports whether anything happened that must not.
func (c Count) Bad() bool { return c.Lost > 0 || c.Twice > 0 || c.Inverted > 0 }
