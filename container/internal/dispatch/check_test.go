package dispatch

import (
	"testing"
	"time"
)

// busy has something in every place: lane a hangs with two behind it, lane b waits for a
// retry with one behind it, lane c waits for other hands, lane d is lost with an orphan,
// lane e runs a batch of which one was put back, and two lanes are ready.
func busy(t *testing.T) *stage {
	st := newStage(t, roomy())
	for _, key := range []string{"a", "b", "c", "d"} {
		st.admit(key, 2)
	}
	out := []*load{st.next(), st.next(), st.next(), st.next()}
	st.s.Hung(&out[0].Item)
	st.s.Park(&out[1].Item, time.Unix(9, 0))
	out[2].Apart = true
	st.s.Park(&out[2].Item, time.Unix(1, 0))
	st.s.Wake(time.Unix(1, 0))
	st.s.Lose(func(l *load) bool { return l == out[3] })
	batch := st.admit("e", 4)
	st.s.Next(3, nil)
	st.s.Park(&batch[0].Item, time.Unix(2, 0))
	for _, key := range []string{"f", "g"} {
		st.admit(key, 1)
	}
	for _, due := range []int64{8, 7, 6} {
		st.admit("", 1)
		for st.s.Front().Of.key != "" { // those of f and g stay
			st.s.ready.push(st.s.ready.pop())
		}
		st.s.Park(&st.next().Item, time.Unix(due, 0))
	}
	st.admit("a", 1)
	st.admit("gone", 1)
	for st.s.Front().Of.key != "gone" {
		st.s.ready.push(st.s.ready.pop())
	}
	st.finish(st.next())
	return st
}

func (st *stage) lane(key string) *lane[load] {
	l, fresh := st.s.lanes.table.get([]byte(key))
	if fresh {
		st.t.Fatalf("there is no lane %q", key)
	}
	return l
}

// Whatever is broken, Check sees it: else the simulation proves nothing.
func TestCheckSeesWhatIsBroken(t *testing.T) {
	for name, corrupt := range map[string]func(st *stage){
		"growth of what does not run": func(st *stage) {
			st.s.ready.front().grown, st.s.ledger.grown = 1, Sum{st.s.ledger.grown.N + 1, st.s.ledger.grown.Bytes + 1}
		},
		"a lane's place":                   func(st *stage) { st.lane("a").pos++ },
		"a lane that cannot be found":      func(st *stage) { st.lane("a").hash++ },
		"a lane that is not in the table":  func(st *stage) { *st.s.lanes.table.bucket(st.lane("a").hash) = nil },
		"a lane that is not listed":        func(st *stage) { st.s.lanes.table.all = st.s.lanes.table.all[:len(st.s.lanes.table.all)-1] },
		"the number of free lanes":         func(st *stage) { st.s.lanes.table.nfree++ },
		"a free lane with items":           func(st *stage) { st.s.lanes.table.free.head = st.lane("a").head },
		"a free lane that ends":            func(st *stage) { st.s.lanes.table.free.tail = st.lane("a").tail },
		"a free lane with a mark":          func(st *stage) { st.s.lanes.table.free.mark = st.lane("a").head },
		"a free lane that runs":            func(st *stage) { st.s.lanes.table.free.running = 1 },
		"a free lane that hangs":           func(st *stage) { st.s.lanes.table.free.standing = Hung },
		"a free lane with a gap":           func(st *stage) { st.s.lanes.table.free.gap = true },
		"a free lane that counts":          func(st *stage) { st.s.lanes.table.free.waiting.N = 1 },
		"a state in the ring":              func(st *stage) { st.s.Front().state = Behind },
		"a state among the running":        func(st *stage) { st.s.running.items[0].state = Ready },
		"a state in the heap":              func(st *stage) { st.s.parked[0].state = Due },
		"a state among the due":            func(st *stage) { st.s.due[0].state = Parked },
		"a state in a lane":                func(st *stage) { st.lane("a").head.state = Ready },
		"an item of no one":                func(st *stage) { st.s.running.items[0].owner = nil },
		"the ring's rest":                  func(st *stage) { st.s.ready.buf[st.s.ready.head+st.s.ready.n] = st.s.Front() },
		"a running item's place":           func(st *stage) { st.s.running.items[1].pos = 0 },
		"a parked item's place":            func(st *stage) { st.s.parked[1].pos = 0 },
		"the order of the heap":            func(st *stage) { st.s.parked[1].due = time.Unix(0, 0) },
		"a due item for workers":           func(st *stage) { st.s.due[0].Apart = false },
		"an orphan's state":                func(st *stage) { st.s.orphans[0].state = Running },
		"a successor of a ready item":      func(st *stage) { st.s.Front().next = st.lane("a").head },
		"a successor of a parked item":     func(st *stage) { st.s.parked[0].next = st.lane("a").head },
		"a successor of a due item":        func(st *stage) { st.s.due[0].next = st.lane("a").head },
		"a lane that waits for nothing":    func(st *stage) { st.lane("b").standing = Open },
		"a lane that waits while it runs":  func(st *stage) { st.lane("e").standing = Waiting },
		"a ready lane that stands":         func(st *stage) { st.lane("f").standing = Waiting },
		"a ready lane that hangs":          func(st *stage) { st.lane("f").standing = Hung },
		"a ready lane that is lost":        func(st *stage) { st.lane("f").standing = Lost },
		"a ready lane with a gap":          func(st *stage) { st.lane("f").gap = true },
		"a lane that runs too little":      func(st *stage) { st.lane("e").running = 1 },
		"a lane that runs and is ready":    func(st *stage) { st.lane("f").running = 1 },
		"a lane that waits for no one":     func(st *stage) { st.lane("a").running = 0 },
		"two first ones":                   func(st *stage) { st.s.due[0].lane = st.lane("b") },
		"a lane that began in the future":  func(st *stage) { st.lane("a").since = st.s.ended + 1 },
		"an item in the lane of others":    func(st *stage) { st.lane("a").head.lane = st.lane("b") },
		"the end of a lane":                func(st *stage) { st.lane("a").tail = st.lane("a").head },
		"a mark that does not wait":        func(st *stage) { st.lane("e").mark = st.lane("a").head },
		"what waits in a lane":             func(st *stage) { st.lane("a").waiting.Bytes++ },
		"the account of a lane":            func(st *stage) { st.lane("a").standing = Open },
		"the age of a lane's item":         func(st *stage) { st.lane("a").head.newer = nil },
		"the oldest":                       func(st *stage) { st.s.arrivals.first = st.s.arrivals.first.newer },
		"the youngest":                     func(st *stage) { st.s.arrivals.last = st.s.arrivals.first },
		"a lane of another length":         func(st *stage) { st.lane("a").measured++ },
		"a lane among those that go on":    func(st *stage) { st.lane("a").blocked = false },
		"the greatest length":              func(st *stage) { st.s.lanes.longestBlocked.most++ },
		"lanes of a length":                func(st *stage) { st.s.lanes.longestOpen.lanes[1]++ },
		"a sum by state":                   func(st *stage) { st.s.held[Running].Bytes++ },
		"a sum of nothing":                 func(st *stage) { st.s.held[Out].Bytes++ },
		"more orphans than taken ones":     func(st *stage) { st.s.orphans = append(st.s.orphans, st.s.orphans...) },
		"bytes of no taken ones":           func(st *stage) { st.s.orphans = nil; st.s.held[Taken] = Sum{0, 1} },
		"an owner that counts too little":  func(st *stage) { st.owner.held = 3 },
		"an account that counts elsewhere": func(st *stage) { st.s.behind[Lost].N++ },
	} {
		st := busy(t)
		st.check()
		corrupt(st)
		if st.s.Check() == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

// What is taken is with the caller: Check needs no more of it than its number.
func TestCheckKnowsWhatIsTaken(t *testing.T) {
	st := busy(t)
	n := len(st.s.TakeWaiting()) + len(st.s.TakeOrphans())
	if st.check(); n < 8 || st.s.Active() < n {
		t.Errorf("%d were taken, %d are active", n, st.s.Active())
	}
}
