package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a Scheduler whose items are named by their key and number.
type stage struct {
	t     *testing.T
	s     *Scheduler[load]
	owner Owner
	ids   int
}

func newStage(t *testing.T, limits Limits) *stage {
	st := &stage{t: t}
	st.s = New(limits, func(l *load) ([]byte, bool) { return []byte(l.key), l.key != "" })
	return st
}

// roomy are limits that no test meets unless it wants to.
func roomy() Limits { return Limits{Bytes: 1 << 40, Retries: 1 << 20, Aside: 1 << 20} }

func (st *stage) check() {
	st.t.Helper()
	if err := st.s.Check(); err != nil {
		st.t.Fatal(err)
	}
}

// admit brings n items of a key in.
func (st *stage) admit(key string, n int) (loads []*load) {
	st.t.Helper()
	for range n {
		st.ids++
		l := &load{id: st.ids, key: key, bytes: 10}
		l.Fill(l, &st.owner, l.bytes)
		st.s.Admit(&l.Item)
		loads = append(loads, l)
	}
	st.check()
	return loads
}

// next starts the item whose turn it is.
func (st *stage) next() *load {
	st.t.Helper()
	out := st.s.Next(1, nil)
	st.check()
	if len(out) != 1 {
		st.t.Fatalf("%d were started", len(out))
	}
	return out[0].Of
}

func (st *stage) finish(l *load) {
	st.t.Helper()
	st.s.Finish(&l.Item)
	st.check()
}

// others handles n items of other keys, one after the other: each must find room.
func (st *stage) others(n, window int) {
	st.t.Helper()
	for i := range n {
		if st.s.Free(window) <= 0 {
			st.t.Fatalf("no room for the other lanes after %d: %d in the window, %v aside", i, st.s.InWindow(), st.s.Aside())
		}
		st.admit(fmt.Sprint("other-", i%10), 1)
		st.finish(st.next())
	}
}

// However a lane is blocked, its followers use its own account: the other lanes go on in
// a window that they could fill a hundred times.
//
// F-N33
func TestBlockedLaneUsesItsOwnAccount(t *testing.T) {
	const window = 9
	day := time.Unix(0, 0).Add(24 * time.Hour)
	blocks := map[string]struct {
		block func(st *stage, head *load)
		why   Standing
	}{
		"its handler hangs and is reported":     {func(st *stage, head *load) { st.s.Hung(&head.Item) }, Hung},
		"its handler hangs and is overtaken":    {func(st *stage, _ *load) { st.others(overtaken, window) }, Hung},
		"its first one is parked":               {func(st *stage, head *load) { st.s.Park(&head.Item, day) }, Waiting},
		"its first one waits for other hands":   {func(st *stage, head *load) { head.Apart = true; st.s.Park(&head.Item, day); st.s.Wake(day) }, Waiting},
		"its first one is lost while it runs":   {func(st *stage, head *load) { st.s.Lose(func(l *load) bool { return l == head }) }, Lost},
		"its first one hangs, and is then lost": {func(st *stage, head *load) { st.s.Hung(&head.Item); st.s.Lose(func(l *load) bool { return l == head }) }, Lost},
	}
	for name, b := range blocks {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, roomy())
			st.admit("blocked", 1)
			head := st.next()
			b.block(st, head)
			for range 100 {
				st.admit("blocked", 1)
				st.others(3, window)
			}
			if got := st.s.Behind(b.why).N; got != 100 || st.s.Aside().N != 100 {
				t.Errorf("%d wait in a lane that is %v, %v aside", got, b.why, st.s.Aside())
			}
			if info, ok := st.s.Longest(true); !ok || string(info.Key) != "blocked" || info.Waiting != 100 {
				t.Errorf("the longest lane that stands: %+v", info)
			}
		})
	}
}

// Beyond its own space what is set aside takes places again: memory is bounded, by number
// and by bytes.
//
// F-N33
func TestWhatIsSetAsideIsBounded(t *testing.T) {
	const window = 20
	for name, limits := range map[string]Limits{
		"by number": {Bytes: 1 << 40, Retries: 9, Aside: 50},
		"by bytes":  {Bytes: 500, Retries: 9, Aside: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, limits)
			st.admit("blocked", 1)
			st.s.Hung(&st.next().Item)
			st.check()
			taken := 0
			for st.s.Free(window) > 0 && taken < 1000 {
				st.admit("blocked", 1)
				taken++
			}
			if taken < 50 || taken > 50+100 {
				t.Errorf("%d were taken in, with room for 50 aside", taken)
			}
			if got := st.s.AsideShare(); got < 1 || got > 3 {
				t.Errorf("%.2f of the space is used", got)
			}
		})
	}
}

// Lanes that only wait for their turn are no blocked lanes: what is held stays within the
// window, whatever the load is.
func TestBusyLanesStayInTheWindow(t *testing.T) {
	const window = 12
	st := newStage(t, roomy())
	var running []*load
	for i := range 10_000 {
		for st.s.Free(window) > 0 {
			st.admit(fmt.Sprint(i%3), 1)
		}
		for len(running) < 4 && st.s.Ready() > 0 {
			running = append(running, st.next())
		}
		st.finish(running[0])
		running = running[1:]
		if st.s.Aside().N > 0 || st.s.Total().N > window {
			t.Fatalf("%v aside of %v", st.s.Aside(), st.s.Total())
		}
	}
}

// A full window that consists of the followers of one lane is looked at again when others
// have ended.
func TestFullWindowIsRelieved(t *testing.T) {
	const window = 20
	st := newStage(t, roomy())
	st.admit("blocked", 1)
	head := st.next()
	st.admit("blocked", window-1)
	if st.s.Relieve(window) || st.s.Room(window) != 0 {
		t.Fatalf("room for %d though nothing has overtaken it", st.s.Room(window))
	}
	for range overtaken { // they came while there was room
		st.admit("", 1)
		if st.s.Relieve(window) {
			t.Fatal("relieved while something is ready")
		}
		st.finish(st.next())
	}
	if !st.s.Relieve(window) || st.s.Room(window) != window-1 {
		t.Fatalf("room for %d, %v aside", st.s.Room(window), st.s.Aside())
	}
	if st.s.Relieve(window) {
		t.Error("relieved twice")
	}
	st.finish(head)
	if st.s.Aside() != (Sum{}) || st.s.Room(window) != 1 {
		t.Errorf("after its end %v are aside, and room is for %d", st.s.Aside(), st.s.Room(window))
	}
}

func TestRingKeepsOrderWhileItGrowsAndIsFiltered(t *testing.T) {
	var q ring[load]
	next, want := int64(0), int64(0)
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 10_000 {
		for range rnd.IntN(5) {
			q.push(&Item[load]{size: next})
			next++
		}
		for range min(rnd.IntN(5), q.n) {
			if got := q.pop().size; got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
	}
	q.filter(func(it *Item[load]) bool { return it.size%2 == 0 })
	for last := int64(-1); q.n > 0; {
		if got := q.pop().size; got <= last || got%2 != 0 {
			t.Fatalf("%d after %d", got, last)
		} else {
			last = got
		}
	}
}

func TestHeapGivesTheFirstDue(t *testing.T) {
	var h heap[load]
	rnd := rand.New(rand.NewPCG(3, 3))
	var all []*Item[load]
	for range 5000 {
		it := &Item[load]{due: time.Unix(rnd.Int64N(1000), 0)}
		h.push(it)
		all = append(all, it)
	}
	for i, it := range all { // some leave from the middle
		if i%3 == 0 {
			h.remove(it)
		}
	}
	last, n := time.Time{}, 0
	for ; len(h) > 0; n++ {
		it := h.pop()
		if it.due.Before(last) {
			t.Fatalf("%v after %v", it.due, last)
		}
		last = it.due
	}
	if want := 5000 - (5000+2)/3; n != want {
		t.Errorf("%d came out, want %d", n, want)
	}
	if h != nil {
		t.Error("the heap keeps its peak")
	}
	for size, kept := range map[int]bool{most: true, most + 1: false} {
		h = make(heap[load], 0, size)
		h.push(all[0])
		if h.pop(); (h != nil) != kept {
			t.Errorf("a heap with room for %d is kept: %v", size, h != nil)
		}
		table := newTable[load]()
		table.all = make([]*lane[load], 0, size)
		l, _ := table.get([]byte("a"))
		if table.drop(l); (table.all != nil) != kept {
			t.Errorf("a list of lanes with room for %d is kept: %v", size, table.all != nil)
		}
	}
}

// The table against a map: same lanes, whatever comes and goes.
func TestTableFindsWhatAMapFinds(t *testing.T) {
	table, model := newTable[load](), map[string]*lane[load]{}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		key := fmt.Sprint(rnd.IntN(3000))
		if l := model[key]; l != nil && rnd.IntN(2) == 0 {
			table.drop(l)
			delete(model, key)
			continue
		}
		l, fresh := table.get([]byte(key))
		if known := model[key]; fresh != (known == nil) || known != nil && known != l || string(l.key) != key {
			t.Fatalf("key %s: fresh %v, known %v", key, fresh, known != nil)
		}
		model[key] = l
	}
	if len(table.all) != len(model) {
		t.Fatalf("%d lanes, want %d", len(table.all), len(model))
	}
}

// Buckets stay few per lane and lanes few per bucket: else finding one would be slow.
func TestTableGrowsAndShrinks(t *testing.T) {
	table := newTable[load]()
	var lanes []*lane[load]
	for i := range 100_000 {
		l, _ := table.get(fmt.Appendf(nil, "key-%d", i))
		lanes = append(lanes, l)
		if n := len(table.buckets); n < len(table.all) || n > max(minBuckets, 2*len(table.all)) {
			t.Fatalf("%d buckets for %d lanes", n, len(table.all))
		}
	}
	for _, l := range lanes {
		before := len(table.buckets)
		table.drop(l)
		n := len(table.buckets)
		if n > max(minBuckets, 8*len(table.all)) || n != before && n != max(minBuckets, 2*(len(table.all)+1)) {
			t.Fatalf("%d buckets for %d lanes, before %d", n, len(table.all), before)
		}
	}
	free := 0
	for l := table.free; l != nil; l = l.chain {
		free++
	}
	if len(table.all) != 0 || len(table.buckets) != minBuckets || free != most || cap(table.all) > most {
		t.Errorf("%d lanes in room for %d, %d buckets, %d free", len(table.all), cap(table.all), len(table.buckets), free)
	}
	if l, _ := table.get([]byte("again")); table.nfree != most-1 || table.free == l || string(l.key) != "again" {
		t.Errorf("a free lane was not used: %d are left", table.nfree)
	}
}

// A lane that is used again keeps the memory of its key, unless that is long.
func TestLaneKeepsTheMemoryOfItsKey(t *testing.T) {
	for _, c := range []struct {
		first, second int
		kept          bool
	}{{100, 50, true}, {96, 96, true}, {50, 100, false}, {longKey, 10, true}, {longKey + 1000, 10, false}} {
		table := newTable[load]()
		l, _ := table.get(make([]byte, c.first))
		at := &l.key[0]
		table.drop(l)
		again, _ := table.get(make([]byte, c.second))
		if again != l || (&again.key[0] == at) != c.kept || len(again.key) != c.second {
			t.Errorf("%d bytes, then %d: same lane %v, same memory %v", c.first, c.second, again == l, &again.key[0] == at)
		}
	}
}

// A burst of ready items does not keep its peak, and a few keep their ring.
func TestRingGivesItsPeakBack(t *testing.T) {
	var q ring[load]
	for range most + 1 {
		q.push(&Item[load]{})
	}
	for q.n > 0 {
		q.pop()
	}
	if q.buf != nil {
		t.Errorf("a ring of %d is left", len(q.buf))
	}
	for range most {
		q.push(&Item[load]{})
	}
	for q.n > 0 {
		q.pop()
	}
	if len(q.buf) != most {
		t.Errorf("a ring of %d is left", len(q.buf))
	}
}

// A loss elsewhere in the middle of a batch's verdicts mixes nothing up.
func TestFilteredLaneKnowsWhatWasPutBack(t *testing.T) {
	l := &lane[load]{}
	l.push(&Item[load]{size: 9})
	for i := range int64(3) {
		l.insert(&Item[load]{size: i})
		l.filter(func(it *Item[load]) bool { return it.size != 1 })
	}
	for _, want := range []int64{0, 2, 9} {
		if it := l.pop(); it == nil || it.size != want {
			t.Fatalf("%+v, want %d", it, want)
		}
	}
	if l.pop() != nil || l.mark != nil {
		t.Error("the lane is not empty")
	}
}

// Only what was put back is of the batch: the loss of one that has not been started tears
// nothing, the loss of one that was does.
func TestLossTearsOnlyTheBatchItBelongsTo(t *testing.T) {
	for name, lose := range map[string]int{"put back": 0, "not started": 2} {
		st := newStage(t, roomy())
		loads := st.admit("a", 4)
		st.s.Next(2, nil)
		st.s.Park(&loads[0].Item, time.Unix(1, 0))
		gone := st.s.Lose(func(l *load) bool { return l == loads[lose] })
		st.check()
		if got, want := st.s.Torn(&loads[1].Item), lose == 0; got != want || len(gone) != 1 {
			t.Errorf("%s: torn %v, want %v; %d are gone", name, got, want, len(gone))
		}
		if want := map[int]int{0: 2, 2: 1}[lose]; st.s.Orphans() != want {
			t.Errorf("%s: %d orphans, want %d", name, st.s.Orphans(), want)
		}
	}
}

// Among lanes of the same length the one that is listed first is named, so that the name
// does not flutter.
func TestLongestLaneDoesNotFlutter(t *testing.T) {
	st := newStage(t, roomy())
	for _, key := range []string{"a", "b", "c"} {
		st.admit(key, 3)
	}
	if info, ok := st.s.Longest(false); !ok || string(info.Key) != "a" || info.Waiting != 2 || info.Standing != Open {
		t.Errorf("%+v", info)
	}
}

// Items that have left can come again, and know nothing of their first time.
func TestItemsAreUsedAgain(t *testing.T) {
	st := newStage(t, roomy())
	l := &load{key: "a", bytes: 10}
	for range 3 {
		l.Fill(l, &st.owner, l.bytes)
		if st.s.Admit(&l.Item); l.State() != Ready || !l.Due().IsZero() || l.Returns() || !l.Ordered() || l.Owner() != &st.owner {
			t.Fatalf("admitted as %+v", l.Item)
		}
		if st.next() != l || l.State() != Running {
			t.Fatalf("started as %v", l.State())
		}
		l.Apart, l.Alone = true, true
		st.s.Park(&l.Item, time.Unix(5, 0))
		st.check()
		if at, ok := st.s.NextDue(); !ok || !at.Equal(time.Unix(5, 0)) || !l.Due().Equal(at) {
			t.Fatalf("due at %v, %v", at, ok)
		}
		if st.s.Wake(time.Unix(4, 0)); st.s.Waiting() != 0 {
			t.Fatal("it was woken too early")
		}
		if st.s.Wake(time.Unix(5, 0)); st.s.Waiting() != 1 || st.s.TakeDue() != &l.Item || st.s.TakeDue() != nil {
			t.Fatal("it does not wait for other hands")
		}
		st.finish(l)
		if st.owner.Held() != 0 || st.s.Total() != (Sum{}) || l.Owner() != nil || l.Of != l {
			t.Fatalf("%d are held, %v", st.owner.Held(), st.s.Total())
		}
	}
}

// Without an order there is no lane, and no key is asked for.
func TestWithoutAnOrderNothingWaits(t *testing.T) {
	s := New[load](roomy(), nil)
	var owner Owner
	for i := range 3 {
		l := &load{id: i, key: "same"}
		l.Fill(l, &owner, 1)
		s.Admit(&l.Item)
	}
	if got := s.Next(2, nil); len(got) != 1 || s.Ready() != 2 || s.Lanes() != 0 || s.Front() == nil || s.Front().Of.id != 1 || s.Abreast() != 3 {
		t.Errorf("%d started, %d ready, %d lanes, %d abreast", len(got), s.Ready(), s.Lanes(), s.Abreast())
	}
	if New[load](roomy(), nil).Front() != nil || s.HeadOf(s.Front()) != nil {
		t.Error("an empty scheduler has a front, or one without a lane waits")
	}
}

// All can be left at any item.
func TestAllStopsWhenTold(t *testing.T) {
	st := newStage(t, roomy())
	st.admit("a", 3)
	st.admit("b", 3)
	parked := st.next()
	st.s.Park(&parked.Item, time.Unix(1, 0))
	st.next()
	for stop := 1; stop <= 6; stop++ {
		n := 0
		for range st.s.All() {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d of %d", n, stop)
		}
	}
}

// Parking is full at its bound, not beyond it.
func TestRetriesAreFullAtTheirBound(t *testing.T) {
	for name, limits := range map[string]Limits{
		"number": {Bytes: 1 << 40, Retries: 2, Aside: 9},
		"bytes":  {Bytes: 20, Retries: 9, Aside: 9}, // an item of the stage has 10
	} {
		st := newStage(t, limits)
		for n := range 2 {
			if st.s.RetriesFull() {
				t.Errorf("%s: full with %d", name, n)
			}
			st.admit("", 1)
			st.s.Park(&st.next().Item, time.Unix(1, 0))
		}
		if !st.s.RetriesFull() {
			t.Errorf("%s: not full", name)
		}
	}
}

func TestStatesAndStandingsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for k := range states {
		names[k.String()] = true
	}
	for k := range standings {
		names[k.String()] = true
	}
	if len(names) != int(states)+int(standings) || names[""] {
		t.Errorf("names: %v", names)
	}
}

// Those that have become larger keep to the limit of bytes together; one alone may pass it,
// and those that wait to grow themselves do not count as others.
func TestWhatGrowsKeepsToTheLimitTogether(t *testing.T) {
	var g ledger
	g.limits.Bytes = 100
	grown := func(n int, bytes int64) {
		t.Helper()
		if got := g.Grown(); got != (Sum{n, bytes}) {
			t.Errorf("grown %+v, want %d of %d bytes", got, n, bytes)
		}
	}
	may := func(want bool, some, more int64, waiting int) {
		t.Helper()
		if got := g.MayGrow(some, more, waiting); got != want {
			t.Errorf("by %d instead of %d, %d wait: %t", more, some, waiting, got)
		}
	}
	may(true, 0, 1000, 0) // alone
	g.resize(0, 60)
	grown(1, 60)
	may(true, 0, 40, 0) // to the byte
	may(false, 0, 41, 0)
	may(true, 0, 41, 1) // the only other one waits too
	may(true, 60, 100, 0)
	may(false, 60, 101, 0)
	g.resize(0, 40)
	grown(2, 100)
	may(false, 0, 1, 1)
	may(true, 0, 1, 2)
	g.resize(60, 10)
	grown(2, 50)
	g.resize(10, 0)
	grown(1, 40)
	g.resize(40, 0)
	grown(0, 0)
	if n := g.held[Running].Bytes; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// An item that became larger while it ran is its old size when it waits for a retry, and only
// a running one grows.
func TestAnItemIsItsOldSizeAfterItsRun(t *testing.T) {
	st := newStage(t, roomy())
	l := st.admit("k", 1)[0]
	st.s.Resize(&l.Item, 5) // it does not run
	st.next()
	for _, more := range []int64{20, 50, 30} {
		st.s.Resize(&l.Item, more)
		if got := st.s.Total(); got != (Sum{1, 10 + more}) || st.s.Grown() != (Sum{1, more}) || l.Grown() != more {
			t.Errorf("larger by %d: %+v, grown %+v", more, got, st.s.Grown())
		}
		st.check()
	}
	st.s.Park(&l.Item, time.Unix(1, 0))
	if st.s.Retries() != (Sum{1, 10}) || st.s.Grown() != (Sum{}) || l.Grown() != 0 {
		t.Errorf("parked: %+v, grown %+v", st.s.Retries(), st.s.Grown())
	}
	st.check()
}

// The verdict of a call may find the loss before it is swept: what is behind goes back with
// it, and the lane waits until all of that has left.
func TestALossFoundByTheVerdictTakesItsFollowersBack(t *testing.T) {
	st := newStage(t, roomy())
	all := st.admit("k", 3)
	st.next()
	st.s.Orphan(&all[0].Item)
	st.check()
	out := st.s.TakeOrphans()
	if len(out) != 2 || out[0].Of != all[1] || out[1].Of != all[2] {
		t.Fatalf("%d orphans", len(out))
	}
	again := st.admit("k", 1)[0]
	st.finish(all[0])
	if st.s.Ready() != 0 {
		t.Error("the lane goes on before its orphans have left")
	}
	st.s.Finish(out...)
	st.check()
	if st.next() != again {
		t.Error("another one is next")
	}
}
