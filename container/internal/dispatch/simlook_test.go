package dispatch

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// coverage counts which changes of state each operation made. Calls of several worlds
// are added up.
type coverage struct {
	moves     map[transition]int
	stands    [standings]int // steps after which a lane with followers stood for that reason
	overtaken int            // lanes that hung because others had overtaken them
}

type transition struct {
	op       string
	from, to State
}

func newCoverage() *coverage { return &coverage{moves: map[transition]int{}} }

func (c *coverage) hit(op string, from, to State) { c.moves[transition{op, from, to}]++ }

func (c *coverage) add(o *coverage) {
	for t, n := range o.moves {
		c.moves[t] += n
	}
	for k, n := range o.stands {
		c.stands[k] += n
	}
	c.overtaken += o.overtaken
}

// transitions are all changes of state that an operation can make. A change that is not
// here is a fault, and one that no run makes is a hole in the simulation.
var transitions = []transition{
	{"admit", Out, Ready},
	{"admit", Out, Behind},
	{"next", Ready, Running},
	{"next", Behind, Running},
	{"finish", Running, Out},
	{"finish", Behind, Ready},
	{"finish", Behind, Parked},
	{"orphan", Behind, Taken},
	{"park", Running, Parked},
	{"park", Running, Behind},
	{"park", Running, Out},
	{"park", Behind, Ready},
	{"park", Behind, Parked},
	{"wake", Parked, Ready},
	{"wake", Parked, Due},
	{"unpark", Parked, Ready},
	{"unpark", Parked, Due},
	{"take due", Due, Running},
	{"take one", Parked, Running},
	{"take one", Ready, Running},
	{"take one", Behind, Running},
	{"take ready", Ready, Taken},
	{"take ready", Behind, Taken},
	{"take parked", Parked, Taken},
	{"take parked", Behind, Taken},
	{"take waiting", Parked, Taken},
	{"take waiting", Due, Taken},
	{"take waiting", Ready, Taken},
	{"take waiting", Behind, Taken},
	{"give back", Taken, Out},
	{"give back", Behind, Ready},
	{"give back", Behind, Parked},
	{"lose", Ready, Out},
	{"lose", Behind, Out},
	{"lose", Parked, Out},
	{"lose", Due, Out},
	{"lose front", Ready, Out},
}

// table shows how often each change was made.
func (c *coverage) table() string {
	var b strings.Builder
	for _, t := range transitions {
		fmt.Fprintf(&b, "%-13s %-8v → %-8v %9d\n", t.op, t.from, t.to, c.moves[t])
	}
	for k, n := range c.stands {
		fmt.Fprintf(&b, "lanes %-8v %29d\n", Standing(k), n)
	}
	fmt.Fprintf(&b, "lanes overtaken %28d\n", c.overtaken)
	return b.String()
}

// holes are what no run, or too few, did.
func (c *coverage) holes(least int) (texts []string) {
	for _, t := range transitions {
		if n := c.moves[t]; n < least {
			texts = append(texts, fmt.Sprintf("%s moved %d items from %v to %v", t.op, n, t.from, t.to))
		}
	}
	for k, n := range c.stands {
		if n < least {
			texts = append(texts, fmt.Sprintf("%d lanes were %v", n, Standing(k)))
		}
	}
	if c.overtaken < least {
		texts = append(texts, fmt.Sprintf("%d lanes were overtaken", c.overtaken))
	}
	return texts
}

// look compares the Scheduler with what the model expects after a step.
func (w *world) look(op string) {
	w.orphaned()
	stay := w.live[:0:0]
	for _, l := range w.live {
		if l.state != l.was {
			w.seen.hit(op, l.was, l.state)
			if !slices.Contains(transitions, transition{op, l.was, l.state}) {
				w.failf("%s moves %d from %v to %v", op, l.id, l.was, l.state)
			}
		}
		if l.state != Out {
			stay = append(stay, l)
			continue
		}
		if l.owner != nil || l.lane != nil || l.next != nil || l.older != nil || l.newer != nil || !l.due.IsZero() || l.size != 0 || l.Apart || l.Alone || l.swept || l.Ordered() {
			w.failf("%d has left with %+v", l.id, l.Item)
		}
	}
	w.live = stay
	if oldest := w.s.Oldest(); len(w.live) == 0 && oldest != nil || len(w.live) > 0 && oldest != w.live[0] {
		w.failf("the oldest is %v", oldest)
	}
	if err := w.s.Check(); err != nil {
		w.failf("%w", err)
	}
	w.sums()
	w.lanes()
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%s:", op)
		for _, l := range w.live {
			fmt.Fprintf(w.trace, " %d=%v", l.id, l.state)
		}
		fmt.Fprintf(w.trace, " room %d free %d\n", w.s.Room(windowOfWorld), w.s.Free(windowOfWorld))
	}
}

// standing is what the model says of a key.
func (w *world) standing(key string) Standing {
	k := w.keys[key]
	for _, l := range w.live {
		if l.key == key && !l.free && (l.state == Parked || l.state == Due) {
			return Waiting
		}
	}
	switch {
	case k.runs == 0:
		return Open
	case k.lost:
		return Lost
	case k.hung:
		return Hung
	}
	return Open
}

// sums counts everything anew, from the items alone.
func (w *world) sums() {
	var held [states]Sum
	var behind [standings]Sum
	var owners [3]int
	for _, l := range w.live {
		held[l.state].add(l.bytes)
		for i := range owners {
			if l.of == &w.owners[i] {
				owners[i]++
			}
		}
		if l.state == Behind {
			behind[w.standing(l.key)].add(l.bytes)
		}
	}
	for i, n := range owners {
		if w.owners[i].Held() != n {
			w.failf("owner %d has %d, and counts %d", i, n, w.owners[i].Held())
		}
	}
	s := w.s
	for k := range standings {
		if behind[k].N > 0 {
			w.seen.stands[k]++
		}
		if s.Behind(k) != behind[k] {
			w.failf("%v wait in lanes that are %v, and %v are counted", behind[k], k, s.Behind(k))
		}
	}
	aside := held[Behind].minus(behind[Open])
	retries := held[Parked].plus(held[Due])
	window := held[Ready].plus(held[Running]).plus(held[Taken]).plus(behind[Open])
	room := windowOfWorld - window.N - max(retries.N-3, 0) - max(aside.N-6, 0)
	left := 900 - window.Bytes - max(aside.Bytes-900, 0)
	free := 0
	if left > 0 {
		free = min(room, int(max(left/max(w.mean, 1), 1)))
	}
	all := Sum{}
	for _, sum := range held {
		all = all.plus(sum)
	}
	share := max(float64(aside.N)/6, float64(aside.Bytes)/900)
	type answers struct {
		aside, retries, total           Sum
		inWindow, room, free            int
		bytes, mean                     int64
		ready, active, waiting, running int
		full                            bool
		share                           float64
	}
	want := answers{aside, retries, all, window.N, room, free, window.Bytes, w.mean,
		held[Ready].N, held[Running].N + held[Taken].N, held[Due].N, held[Running].N, retries.N >= 3 || retries.Bytes >= 900, share}
	got := answers{s.Aside(), s.Retries(), s.Total(), s.InWindow(), s.Room(windowOfWorld), s.Free(windowOfWorld), s.Bytes(), s.Mean(),
		s.Ready(), s.Active(), s.Waiting(), len(s.running.items), s.RetriesFull(), s.AsideShare()}
	if got != want {
		w.failf("the answers are %+v, and should be %+v", got, want)
	}
	w.listed(held)
}

// listed looks whether All shows each item once.
func (w *world) listed(held [states]Sum) {
	var ids []int
	for it := range w.s.All() {
		ids = append(ids, it.Of.id)
	}
	n := len(ids)
	sort.Ints(ids)
	if ids = slices.Compact(ids); len(ids) != n || n != len(w.live)-held[Taken].N {
		w.failf("All shows %d items, %d of them once; %d are held and %d of them taken", n, len(ids), len(w.live), held[Taken].N)
	}
}

// lanes looks at what is said of the lanes.
func (w *world) lanes() {
	waiting, abreast := map[string]int{}, 0
	for _, l := range w.live {
		switch {
		case l.key == "" || l.free:
			if l.state == Ready || l.state == Running {
				abreast++
			}
		case l.state == Behind:
			waiting[l.key]++
		default:
			if _, ok := waiting[l.key]; !ok {
				waiting[l.key] = 0
			}
		}
		if h := w.s.HeadOf(&l.Item); (h != nil) != (l.Ordered() && w.parkedHead(l.key) != nil) || h != nil && h.Of != w.parkedHead(l.key) {
			w.failf("%d waits for a parked one: %v", l.id, h != nil)
		}
	}
	longest := [standings + 1]int{}
	for i := range longest {
		longest[i] = -1
	}
	for key, n := range waiting {
		k := w.standing(key)
		longest[k], longest[standings] = max(longest[k], n), max(longest[standings], n)
		if k != Waiting {
			abreast++
		}
	}
	if w.s.Lanes() != len(waiting) || w.s.Abreast() != abreast {
		w.failf("%d lanes, %d abreast; counted: %d, %d", w.s.Lanes(), w.s.Abreast(), len(waiting), abreast)
	}
	if w.s.LongestWait() != max(longest[standings], 0) {
		w.failf("%d wait in the longest lane; counted: %d", w.s.LongestWait(), longest[standings])
	}
	most := map[bool]int{false: longest[Open], true: max(longest[Hung], longest[Lost], longest[Waiting])}
	for blocked, n := range most {
		info, ok := w.s.Longest(blocked)
		if ok != (n > 0) || ok && (info.Waiting != n || waiting[string(info.Key)] != n || info.Standing != w.standing(string(info.Key)) || (info.Standing != Open) != blocked) {
			w.failf("the longest lane, blocked %v: %+v, %v; counted: %d", blocked, info, ok, n)
		}
	}
}

func (w *world) parkedHead(key string) *load {
	for _, l := range w.live {
		if l.key == key && !l.free && l.state == Parked {
			return l
		}
	}
	return nil
}
