package dispatch

// longest knows the length of the longest of some lanes without a walk over them. A length
// changes by one at a time nearly always, so counting the lanes of each length is enough:
// when the last one of the greatest length becomes shorter, the next length below is near.
type longest[T any] struct {
	lanes []int    // how many lanes have so many items waiting; those with none are not counted
	most  int      // the greatest length; 0: nothing waits in any of them
	last  *lane[T] // the lane that reached it last; it may have become shorter since
}

// grow counts a lane with so many items waiting.
func (g *longest[T]) grow(l *lane[T], n int) {
	if n == 0 {
		return
	}
	for len(g.lanes) <= n {
		g.lanes = append(g.lanes, 0)
	}
	g.lanes[n]++
	if n > g.most {
		g.most, g.last = n, l
	}
}

// shrink forgets a lane that had so many.
func (g *longest[T]) shrink(n int) {
	if n == 0 {
		return
	}
	g.lanes[n]--
	for g.most > 0 && g.lanes[g.most] == 0 {
		g.most--
	}
	if g.most == 0 {
		g.last = nil
		if cap(g.lanes) > most {
			g.lanes = nil
		}
	}
}

// measure notes how many wait in a lane, and whether they can go on, after either has
// changed.
func (ls *lanes[T]) measure(l *lane[T]) {
	n, blocked := l.waiting.N, l.standing != Open
	if n == l.measured && blocked == l.blocked {
		return
	}
	ls.longestOf(l.blocked).shrink(l.measured)
	ls.longestOf(blocked).grow(l, n)
	l.measured, l.blocked = n, blocked
}

func (ls *lanes[T]) longestOf(blocked bool) *longest[T] {
	if blocked {
		return &ls.longestBlocked
	}
	return &ls.longestOpen
}

// LongestWait is how many wait in the lane in which the most do.
func (ls *lanes[T]) LongestWait() int { return max(ls.longestOpen.most, ls.longestBlocked.most) }

// Longest describes the lane in which the most wait, among those that go on or those that
// are blocked; false: nothing waits in any of them. It looks at all lanes only if several
// took turns in being the longest.
func (ls *lanes[T]) Longest(blocked bool) (info LaneInfo, ok bool) {
	g := ls.longestOf(blocked)
	if g.most == 0 {
		return info, false
	}
	is := func(l *lane[T]) bool { return l.waiting.N == g.most && l.blocked == blocked }
	if !is(g.last) {
		for _, l := range ls.table.all {
			if is(l) {
				g.last = l
				break
			}
		}
	}
	return LaneInfo{g.last.key, g.last.standing, g.last.waiting.N}, true
}

// LaneInfo describes a lane.
type LaneInfo struct {
	// Key is the lane's name; it must not be kept.
	Key []byte
	// Standing is why the lane is blocked, or that it is open.
	Standing Standing
	// Waiting is how many wait in it.
	Waiting int
}
