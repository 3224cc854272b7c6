package dispatch

import (
	"fmt"
	"slices"
)

// Check looks at every invariant and returns the first that is broken. It costs a walk
// over everything held, so it runs in tests only: after every step of the simulation, and
// at the quiet points of the container's own tests.
func (s *Scheduler[T]) Check() error {
	c := checker[T]{s: s, owners: map[*Owner]int{}}
	c.ring()
	c.run()
	c.heap()
	c.others()
	for i, l := range s.lanes.table.all {
		c.failIf(l.pos != i, "lane %q believes it is at %d, and is at %d", l.key, l.pos, i)
		c.lane(l)
	}
	c.table()
	c.sums()
	c.arrivals()
	c.longest(&s.lanes.longestOpen, false)
	c.longest(&s.lanes.longestBlocked, true)
	return c.err
}

// checker counts again what the Scheduler counts as it goes.
type checker[T any] struct {
	s      *Scheduler[T]    // that is checked
	held   [states]Sum      // counted from the places of items
	behind [standings]Sum   // counted from the lists of lanes
	owners map[*Owner]int   // items found, by owner
	heads  map[*lane[T]]int // ready, parked or due ones of each lane
	runs   map[*lane[T]]int // running ones of each lane
	grown  Sum              // counted from the running ones
	err    error            // the first invariant that is broken
}

func (c *checker[T]) failIf(broken bool, format string, args ...any) {
	if broken && c.err == nil {
		c.err = fmt.Errorf("dispatch: "+format, args...)
	}
}

// see counts an item in its place.
func (c *checker[T]) see(it *Item[T], want State) {
	c.failIf(it.state != want, "an item is %v in a place for those that are %v", it.state, want)
	c.held[want].add(it.size)
	if it.grown > 0 {
		c.grown.add(it.grown)
	}
	c.failIf(it.grown != 0 && want != Running || it.grown < 0 || it.grown > it.size, "an item that is %v of %d bytes has grown by %d", want, it.size, it.grown)
	if it.owner == nil {
		c.failIf(true, "an item that is %v has no owner", want)
		return
	}
	c.owners[it.owner]++
}

// head counts the item that a lane waits for.
func (c *checker[T]) head(it *Item[T]) {
	c.failIf(it.next != nil, "the first of a lane is %v and has a successor of its own", it.state)
	if it.lane == nil {
		return
	}
	if c.heads == nil {
		c.heads = map[*lane[T]]int{}
	}
	c.heads[it.lane]++
	blocked := it.lane.standing == Waiting
	c.failIf(blocked != (it.state != Ready), "a lane is %v and its first item %v", it.lane.standing, it.state)
}

func (c *checker[T]) ring() {
	q := &c.s.ready
	for i := range q.n {
		c.see(q.at(i), Ready)
		c.head(q.at(i))
	}
	for i := q.n; i < len(q.buf); i++ {
		c.failIf(q.at(i) != nil, "the ring keeps an item that has left")
	}
}

func (c *checker[T]) run() {
	for i, it := range c.s.running.items {
		c.see(it, Running)
		c.failIf(it.pos != i, "a running item believes it is at %d, and is at %d", it.pos, i)
		if it.lane != nil {
			if c.runs == nil {
				c.runs = map[*lane[T]]int{}
			}
			c.runs[it.lane]++
		}
	}
}

func (c *checker[T]) heap() {
	for i, it := range c.s.parking.parked {
		c.see(it, Parked)
		c.head(it)
		c.failIf(it.pos != i, "a parked item believes it is at %d, and is at %d", it.pos, i)
		c.failIf(it.due.Before(c.s.parking.parked[max(i-1, 0)/2].due), "the heap is out of order at %d", i)
	}
}

func (c *checker[T]) others() {
	for _, it := range c.s.parking.due {
		c.see(it, Due)
		c.head(it)
		c.failIf(!it.Apart, "an item is due apart that a worker could start")
	}
	for _, it := range c.s.lanes.orphans {
		c.failIf(it.state != Taken, "an orphan is %v", it.state)
	}
}

// lane looks at one lane: someone is first in it, its list is whole, and its account is
// that of its standing.
func (c *checker[T]) lane(l *lane[T]) {
	heads := c.heads[l]
	c.failIf(heads > 1, "lane %q has %d first items", l.key, heads)
	c.failIf((l.running > 0) == (heads > 0), "lane %q: %d run and %d are first", l.key, l.running, heads)
	c.failIf(c.runs[l] > l.running, "lane %q waits for %d, and %d run", l.key, l.running, c.runs[l])
	c.failIf(l.running == 0 && (l.standing == Hung || l.standing == Lost || l.gap), "lane %q is %v, and nothing of it runs", l.key, l.standing)
	c.failIf(l.since > c.s.lanes.ended, "lane %q began in the future", l.key)
	var sum Sum
	var last *Item[T]
	marked := l.mark == nil
	for it := l.head; it != nil; it = it.next {
		c.see(it, Behind)
		c.failIf(it.lane != l, "an item waits in the lane of others")
		sum.add(it.size)
		marked = marked || it == l.mark
		last = it
	}
	c.failIf(l.tail != last, "lane %q does not end with its last item", l.key)
	c.failIf(!marked, "lane %q remembers an item that does not wait in it", l.key)
	c.failIf(l.measured != sum.N || l.blocked != (l.standing != Open), "lane %q is %v with %d, and was measured with %d", l.key, l.standing, sum.N, l.measured)
	c.failIf(sum != l.waiting, "lane %q counts %v, and has %v", l.key, l.waiting, sum)
	c.behind[l.standing] = c.behind[l.standing].plus(sum)
}

// table looks whether each lane can be found, and whether the free ones are clean.
func (c *checker[T]) table() {
	t := &c.s.lanes.table
	n := 0
	for i, l := range t.buckets {
		for ; l != nil; l = l.chain {
			n++
			c.failIf(l.hash&uint64(len(t.buckets)-1) != uint64(i), "lane %q is in the wrong bucket", l.key)
		}
	}
	c.failIf(n != len(t.all), "%d lanes can be found, and %d are listed", n, len(t.all))
	for l := t.free; l != nil; l = l.chain {
		n--
		c.failIf(l.head != nil || l.tail != nil || l.mark != nil || l.running != 0 || l.standing != Open || l.gap || l.waiting != Sum{},
			"a lane that was dropped is not empty: %+v", l)
	}
	c.failIf(n != len(t.all)-t.nfree, "%d lanes are free, and %d are said to be", len(t.all)-n, t.nfree)
}

func (c *checker[T]) sums() {
	s := c.s
	c.held[Taken] = s.held[Taken] // those are with the caller
	c.failIf(c.held != s.held, "the sums are %v, and should be %v", s.held, c.held)
	c.failIf(c.grown != s.grown, "%v have grown, and should be %v", s.grown, c.grown)
	c.failIf(c.behind != s.behind, "the accounts of lanes are %v, and should be %v", s.behind, c.behind)
	c.failIf(s.held[Taken].N < len(s.lanes.orphans) || s.held[Taken].N == 0 && s.held[Taken].Bytes != 0, "taken: %v, with %d orphans", s.held[Taken], len(s.lanes.orphans))
	total := 0
	for o, n := range c.owners {
		total += n
		c.failIf(o.held < n, "an owner counts %d items, and has %d", o.held, n)
	}
	c.failIf(total+s.held[Taken].N != s.Total().N, "%d items are held, and %d are said to be", total+s.held[Taken].N, s.Total().N)
}

// arrivals follows the list of everything that is held.
func (c *checker[T]) arrivals() {
	n := 0
	var last *Item[T]
	for it := c.s.arrivals.first; it != nil && n <= c.s.Total().N; it = it.newer {
		c.failIf(it.older != last, "an item does not know the one that is older")
		c.failIf(it.state == Out, "an item that is not held has an age")
		n, last = n+1, it
	}
	c.failIf(c.s.arrivals.last != last, "the list of ages does not end with its last item")
	c.failIf(n != c.s.Total().N, "%d items have an age, and %d are held", n, c.s.Total().N)
}

// longest counts the lanes of each length again.
func (c *checker[T]) longest(g *longest[T], blocked bool) {
	lanes, most := make([]int, len(g.lanes)), 0
	for _, l := range c.s.lanes.table.all {
		if n := l.waiting.N; n > 0 && l.blocked == blocked && n < len(lanes) {
			lanes[n]++
			most = max(most, n)
		}
	}
	c.failIf(!slices.Equal(lanes, g.lanes) || most != g.most, "lanes by length are %v, the longest has %d; counted: %v, %d", g.lanes, g.most, lanes, most)
}
