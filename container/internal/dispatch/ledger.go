package dispatch

// Sum counts items and the bytes that they keep alive.
type Sum struct {
	N     int   // how many items
	Bytes int64 // what they keep alive together
}

func (s *Sum) add(size int64) { s.N, s.Bytes = s.N+1, s.Bytes+size }

func (s *Sum) sub(size int64) { s.N, s.Bytes = s.N-1, s.Bytes-size }

// plus is both together.
func (s Sum) plus(o Sum) Sum { return Sum{s.N + o.N, s.Bytes + o.Bytes} }

// minus is what remains without the other.
func (s Sum) minus(o Sum) Sum { return Sum{s.N - o.N, s.Bytes - o.Bytes} }

// Limits bound what is held; see [Scheduler.Room].
type Limits struct {
	// Bytes is how much memory may be kept alive by what runs or could run. Parked
	// items have the same amount for themselves, and so have items in blocked lanes.
	Bytes int64
	// Retries is how many parked items take no place in the window.
	Retries int
	// Aside is how many items in blocked lanes take no place in the window.
	Aside int
}

// ledger owns every sum over what is held, and answers from them how much more fits.
// The other parts post each change of an item's state here.
//
// Every lane has its own account. Items behind a first item that makes progress take
// places in the window, like ready and running ones: they will need a worker soon. Once
// the lane is blocked, for whatever reason, its followers take none, so that the places
// are left to the other lanes. Only when the space for blocked lanes is used up, which
// bounds memory, does the rest take from the window again.
type ledger struct {
	limits Limits         // what the sums are compared with
	held   [states]Sum    // items by what they do; Behind is split up in behind
	behind [standings]Sum // items behind others, by why their lane is blocked: each reason has its own account
	grown  Sum            // running items that became larger, and by how much
	mean   int64          // bytes of an item, smoothed: the size to expect of the next ones
}

// meanAtFirst is the size to expect before the first item was seen.
const meanAtFirst = 1024

// enter counts a new item.
func (g *ledger) enter(to State, size int64) {
	g.mean += (size - g.mean) / 8
	g.held[to].add(size)
}

// leave takes an item out of the sums.
func (g *ledger) leave(from State, size int64) { g.held[from].sub(size) }

// move counts an item elsewhere.
func (g *ledger) move(from, to State, size int64) {
	g.held[from].sub(size)
	g.held[to].add(size)
}

// resize makes a running item larger by more in all than when it was received, instead of
// by was.
func (g *ledger) resize(was, more int64) {
	g.held[Running].Bytes += more - was
	if was > 0 {
		g.grown.sub(was)
	}
	if more > 0 {
		g.grown.add(more)
	}
}

// MayGrow says whether a running item may become larger by more, of which it has some
// already: as long as those that have become larger keep to the limit of bytes together.
// One alone is let through. waiting of those with more wait themselves to grow: none of
// them ends before.
func (g *ledger) MayGrow(some, more int64, waiting int) bool {
	return g.grown.N <= waiting || g.grown.Bytes-some+more <= g.limits.Bytes
}

// Grown is the running items that have become larger, and by how much.
func (g *ledger) Grown() Sum { return g.grown }

// queue charges an item that waits in a lane to the account of the lane's standing.
func (g *ledger) queue(in Standing, size int64) { g.behind[in].add(size) }

// unqueue takes it off that account.
func (g *ledger) unqueue(in Standing, size int64) { g.behind[in].sub(size) }

// recharge moves what waits in a lane to another account.
func (g *ledger) recharge(from, to Standing, waiting Sum) {
	g.behind[from] = g.behind[from].minus(waiting)
	g.behind[to] = g.behind[to].plus(waiting)
}

// Room is how many more items fit into a window of so many places; negative: so many are
// too many.
func (g *ledger) Room(window int) int {
	room := window - g.InWindow()
	if g.held[Parked].N+g.held[Due].N+g.held[Behind].N == 0 { // nearly always
		return room
	}
	return room - max(g.Retries().N-g.limits.Retries, 0) - max(g.Aside().N-g.limits.Aside, 0)
}

// Free is how many more items may be received: as many as there is room for, by their
// number and by their bytes. One larger item alone is let through.
func (g *ledger) Free(window int) int {
	left := g.limits.Bytes - g.Bytes() - max(g.Aside().Bytes-g.limits.Bytes, 0)
	if left <= 0 {
		return 0
	}
	// The size of the next ones is not known: expect that of the last ones.
	return min(g.Room(window), int(max(left/max(g.mean, 1), 1)))
}

// LimitAside changes how many items in blocked lanes take no place in the window.
func (g *ledger) LimitAside(n int) { g.limits.Aside = n }

// RetriesFull says whether the space for parked items is used up.
func (g *ledger) RetriesFull() bool {
	r := g.Retries()
	return r.N >= g.limits.Retries || r.Bytes >= g.limits.Bytes
}

// AsideShare is how much of the space for blocked lanes is used, 0 to 1 and beyond.
func (g *ledger) AsideShare() float64 {
	a := g.Aside()
	return max(float64(a.N)/float64(g.limits.Aside), float64(a.Bytes)/float64(g.limits.Bytes))
}

// InWindow is how many items take a place: those that are ready, running or taken, and
// the followers in open lanes.
func (g *ledger) InWindow() int {
	return g.held[Ready].N + g.held[Running].N + g.held[Taken].N + g.behind[Open].N
}

// Bytes is what those in the window keep alive.
func (g *ledger) Bytes() int64 {
	return g.held[Ready].Bytes + g.held[Running].Bytes + g.held[Taken].Bytes + g.behind[Open].Bytes
}

// Retries is what waits for its time, or has waited and is due elsewhere.
func (g *ledger) Retries() Sum { return g.held[Parked].plus(g.held[Due]) }

// Behind is what waits in lanes of one standing.
func (g *ledger) Behind(in Standing) Sum { return g.behind[in] }

// Aside is what waits in blocked lanes, for whatever reason.
func (g *ledger) Aside() Sum { return g.held[Behind].minus(g.behind[Open]) }

// Beside is how many items are held outside the window: parked ones, and those in blocked
// lanes.
func (g *ledger) Beside() int { return g.Retries().N + g.Aside().N }

// Ready is how many items wait for nothing but a worker.
func (g *ledger) Ready() int { return g.held[Ready].N }

// Active is how many are running or on their way back to the broker: a drain waits for
// them.
func (g *ledger) Active() int { return g.held[Running].N + g.held[Taken].N }

// Waiting is how many are due and not for a worker.
func (g *ledger) Waiting() int { return g.held[Due].N }

// Total is everything that is held.
func (g *ledger) Total() (all Sum) {
	for _, sum := range g.held {
		all = all.plus(sum)
	}
	return all
}

// Mean is how many bytes an item keeps alive, smoothed.
func (g *ledger) Mean() int64 { return g.mean }
