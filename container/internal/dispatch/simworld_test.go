package dispatch

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// The world of the simulation: a Scheduler, everything that was put into it, and a
// model that knows the rules but none of the structures. A step is an operation with two
// numbers, which mean the same whatever came before, so that any part of a history is a
// history too: that is what shrinks a failing one.

// load is what an item of the simulation carries.
type load struct {
	Item[load]
	id    int
	key   string // "": no lane
	bytes int64  // of the item, which forgets them when it leaves
	of    *Owner
	lost  bool
	was   State // before the step
	free  bool  // it waits behind others, or did, and its lane does not wait for it
	turn  int   // the call of Next that started it
	gone  bool  // taken, and noted as that
}

// account is what the model knows of a key.
type account struct {
	since uint64 // how many calls had ended when the first of the running ones began
	hung  bool
	lost  bool
	runs  int // of those its lane waits for
}

// limitsOfWorld are small, so that each of them is met.
var limitsOfWorld = Limits{Bytes: 900, Retries: 3, Aside: 6}

const windowOfWorld = 12

type world struct {
	s      *Scheduler[load]
	owners [3]Owner
	live   []*load // in the order of their admission
	taken  []*load // in the order in which they were taken
	keys   map[string]*account
	ended  uint64
	looked uint64
	mean   int64
	now    time.Time
	ids    int
	turns  int
	trace  *bytes.Buffer // nil: none is written
	seen   *coverage
	broken error
}

func newWorld(seen *coverage) *world {
	w := &world{keys: map[string]*account{}, now: time.Unix(0, 0), mean: meanAtFirst, seen: seen}
	w.s = New(limitsOfWorld, func(l *load) ([]byte, bool) { return []byte(l.key), l.key != "" })
	return w
}

// step is one operation of a history.
type step struct {
	op   uint8
	a, b uint16
}

// operation is what a step does. Those that find nothing to do, do nothing.
type operation struct {
	name string
	odds int
	do   func(w *world, a, b int)
}

var operations = []operation{
	{"admit", 20, (*world).admit},
	{"next", 26, (*world).next},
	{"finish", 22, (*world).finish},
	{"park", 14, (*world).park},
	{"wake", 9, (*world).wake},
	{"unpark", 3, (*world).unpark},
	{"take due", 3, (*world).takeDue},
	{"hung", 2, (*world).hung},
	{"relieve", 3, (*world).relieve},
	{"take one", 4, (*world).takeOne},
	{"take ready", 1, (*world).takeReady},
	{"take parked", 1, (*world).takeParked},
	{"take waiting", 2, (*world).takeWaiting},
	{"take orphans", 4, (*world).takeOrphans},
	{"give back", 12, (*world).giveBack},
	{"lose", 5, (*world).lose},
	{"lose front", 1, (*world).loseFront},
	{"lose in batch", 2, (*world).loseInBatch},
}

func (w *world) failf(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// in are the items of the world in a state, oldest first.
func (w *world) in(state State) (found []*load) {
	for _, l := range w.live {
		if l.state == state {
			found = append(found, l)
		}
	}
	return found
}

func pick(ls []*load, n int) *load {
	if len(ls) == 0 {
		return nil
	}
	return ls[n%len(ls)]
}

// apply does one step and looks at everything.
func (w *world) apply(st step) error {
	op := &operations[st.op]
	for _, l := range w.live {
		l.was = l.state
	}
	before := w.live
	op.do(w, int(st.a), int(st.b))
	for _, l := range w.live[len(before):] {
		l.was = Out
	}
	w.look(op.name)
	return w.broken
}

func (w *world) admit(a, b int) {
	items := make([]*Item[load], 0, 3)
	var loads []*load
	for range 1 + a%3 {
		w.ids++
		l := &load{id: w.ids, bytes: int64(b % 97), of: &w.owners[(a/3)%3]}
		if k := (b + w.ids*(a%5)) % 6; k > 0 {
			l.key = strconv.Itoa(k)
		}
		l.Fill(l, l.of, l.bytes)
		l.Alone = a%11 == 0
		items, loads = append(items, &l.Item), append(loads, l)
	}
	w.s.Admit(items...)
	for _, l := range loads {
		w.mean += (l.bytes - w.mean) / 8
		w.live = append(w.live, l)
		if l.key == "" {
			continue
		}
		if w.keys[l.key] == nil {
			w.keys[l.key] = &account{}
		}
		if l.state == Behind {
			w.overtakes(l.key)
		}
	}
}

// overtakes is the rule by which a lane hangs.
func (w *world) overtakes(key string) {
	k := w.keys[key]
	if k.runs > 0 && !k.lost && w.ended-k.since >= overtaken*uint64(len(w.in(Running))) {
		if !k.hung {
			w.seen.overtaken++
		}
		k.hung = true
	}
}

func (w *world) begins(l *load) {
	l.turn = w.turns
	if l.key == "" || l.free {
		return
	}
	w.occupies(l)
}

func (w *world) occupies(l *load) {
	k := w.keys[l.key]
	if k.runs == 0 {
		*k = account{since: w.ended}
	}
	k.runs++
}

func (w *world) next(a, _ int) {
	w.turns++
	front := w.s.Front()
	n := 1 + a%4
	out := w.s.Next(n, nil)
	if (front == nil) != (len(out) == 0) || front != nil && out[0] != front || len(out) > n {
		w.failf("Next(%d) gave %d, and the front was there: %v", n, len(out), front != nil)
	}
	for i, it := range out {
		l := it.Of
		w.begins(l)
		if l.Alone && len(out) > 1 || i > 0 && (l.key != out[0].Of.key || l.Apart || !l.due.IsZero()) {
			w.failf("%d shares a batch", l.id)
		}
		w.mayStart(l)
	}
	if len(out) == 0 || len(out) == n || out[0].Of.Alone || out[0].Of.key == "" || out[0].Of.free {
		return
	}
	for _, l := range w.live { // the batch ends early only for a reason
		if l.key == out[0].Of.key && l.state == Behind {
			if l.joins() {
				w.failf("a batch of %d leaves %d behind, though there is room", len(out), l.id)
			}
			return
		}
	}
}

// mayStart looks whether all that came before an item in its lane have ended, or are
// before it in its batch.
func (w *world) mayStart(l *load) {
	if l.key == "" || l.free {
		return
	}
	for _, o := range w.live {
		if o == l {
			return
		}
		if o.key == l.key && !o.free && (o.state != Running || o.turn != l.turn) {
			w.failf("%d of lane %s starts while %d, which came before it, is %v", l.id, l.key, o.id, o.state)
		}
	}
}

// firstOfBatch is a running item before whose lane's others no verdict is carried out.
func (w *world) firstOfBatch(n int) *load {
	l := pick(w.in(Running), n)
	if l == nil || l.key == "" || l.free {
		return l
	}
	for _, o := range w.live {
		if o.key == l.key && o.state == Running && !o.free {
			return o
		}
	}
	return l
}

func (w *world) finish(a, _ int) {
	if l := w.firstOfBatch(a); l != nil {
		w.end(l)
	}
}

// end lets one go that ran; what is lost or torn takes its followers with it.
func (w *world) end(l *load) {
	if l.lost {
		batch := l.key != "" && !l.free && w.keys[l.key].runs > 1
		w.s.Orphan(&l.Item)
		if batch && !w.s.Torn(&l.Item) {
			w.failf("%d is lost, and the others of its batch would be tried again here", l.id)
		}
		w.orphaned()
	}
	w.ended++
	w.leaves(l)
	w.s.Finish(&l.Item)
}

// orphaned notes which items have become orphans, and whether their lanes wait for them.
func (w *world) orphaned() {
	for _, l := range w.live {
		if l.state != Taken || l.gone {
			continue
		}
		if l.Ordered() {
			w.occupies(l)
		} else {
			l.free = true
		}
		l.was, l.gone = Taken, true
		w.taken = append(w.taken, l)
		w.seen.hit("orphan", Behind, Taken)
	}
}

func (w *world) leaves(l *load) {
	if l.key != "" && !l.free {
		w.keys[l.key].runs--
	}
}

func (w *world) park(a, b int) {
	l := w.firstOfBatch(a)
	switch {
	case l == nil:
	case l.lost:
		w.end(l)
	case w.s.Torn(&l.Item):
		w.s.Orphan(&l.Item)
		w.orphaned()
		w.end(l)
	default:
		l.Apart = b%3 == 0
		l.Alone = l.Alone || b%5 == 0
		w.ended++
		w.leaves(l)
		w.s.Park(&l.Item, w.now.Add(time.Duration(1+b%7)))
	}
}

func (w *world) wake(a, _ int) {
	w.now = w.now.Add(time.Duration(a % 4))
	w.s.Wake(w.now)
	if at, ok := w.s.NextDue(); ok && !at.After(w.now) || ok != (len(w.in(Parked)) > 0) {
		w.failf("after Wake(%v) the next is due at %v, %v", w.now, at, ok)
	}
	for _, l := range w.in(Parked) {
		if at, _ := w.s.NextDue(); l.due.Before(at) {
			w.failf("%d is due at %v, and the first at %v", l.id, l.due, at)
		}
	}
}

func (w *world) unpark(a, b int) {
	l := pick(w.live, a)
	if parked := w.in(Parked); b%4 > 0 && len(parked) > 0 {
		l = pick(parked, a)
	}
	if l == nil {
		return
	}
	was, apart := l.state, l.Apart
	done := w.s.Unpark(&l.Item)
	if done != (was == Parked) || done && (l.state == Due) != apart {
		w.failf("unparking %d, which was %v: %v, now %v", l.id, was, done, l.state)
	}
}

func (w *world) takeDue(_, _ int) {
	w.turns++
	waiting := w.in(Due)
	it := w.s.TakeDue()
	if (it == nil) != (len(waiting) == 0) {
		w.failf("TakeDue gave one: %v; %d wait", it != nil, len(waiting))
	}
	if it != nil {
		w.begins(it.Of)
		w.mayStart(it.Of)
	}
}

func (w *world) hung(a, _ int) {
	l := pick(w.live, a)
	if l == nil {
		return
	}
	w.s.Hung(&l.Item)
	if l.state == Running && l.key != "" && !l.free && !w.keys[l.key].lost {
		w.keys[l.key].hung = true
	}
}

func (w *world) relieve(_, _ int) {
	before := w.s.Room(windowOfWorld)
	done := w.s.Relieve(windowOfWorld)
	ready := len(w.in(Ready))
	if ready == 0 && w.openFollowers() && w.looked != w.ended {
		w.looked = w.ended
		for key := range w.keys {
			w.overtakes(key)
		}
	}
	after := w.s.Room(windowOfWorld)
	if done != (after > before && after > 0) && (!done || w.looked != w.ended || after <= 0) {
		w.failf("Relieve says %v; the room was %d and is %d, with %d ready", done, before, after, ready)
	}
}

// openFollowers says whether anything waits in a lane that goes on.
func (w *world) openFollowers() bool {
	for _, l := range w.live {
		if l.state == Behind && w.standing(l.key) == Open {
			return true
		}
	}
	return false
}

func (w *world) takeOne(a, _ int) {
	l := pick(w.live, a)
	if l == nil {
		return
	}
	w.turns++
	was := l.state
	done := w.s.TakeOne(&l.Item)
	if done != (was == Parked || was == Ready || was == Behind) {
		w.failf("taking %d, which was %v: %v", l.id, was, done)
	}
	if !done {
		return
	}
	l.free = l.free || was == Behind
	w.begins(l)
}

func (w *world) takeReady(a, _ int) {
	of := &w.owners[a%3]
	for _, l := range w.gives(w.s.TakeReady(of)) {
		if l.was == Ready && l.of != of {
			w.failf("%d of another owner was taken", l.id)
		}
	}
	for _, l := range w.in(Ready) {
		if l.of == of {
			w.failf("%d was not taken", l.id)
		}
	}
}

func (w *world) takeParked(_, _ int) {
	w.gives(w.s.TakeParked())
	if n := len(w.in(Parked)); n > 0 {
		w.failf("%d were not taken", n)
	}
}

func (w *world) takeWaiting(_, _ int) {
	out := w.gives(w.s.TakeWaiting())
	var at time.Time
	ready := false
	for _, l := range out { // by their times, then what is ready
		switch l.was {
		case Ready:
			ready = true
		case Parked, Due:
			if ready || l.due.Before(at) {
				w.failf("%d comes too late", l.id)
			}
			at = l.due
		}
	}
	if n := len(w.in(Ready)) + len(w.in(Parked)) + len(w.in(Due)); n > 0 {
		w.failf("%d were not taken", n)
	}
}

// gives are items that were taken: the followers of each right behind it.
func (w *world) gives(out []*Item[load]) (loads []*load) {
	for _, it := range out {
		l := it.Of
		if l.was == Taken || l.state != Taken {
			w.failf("%d was %v, and is %v", l.id, l.was, l.state)
		}
		if l.key != "" && !l.free {
			w.occupies(l)
		}
		l.gone = true
		w.taken, loads = append(w.taken, l), append(loads, l)
	}
	for i, l := range loads {
		for _, o := range loads[:i] {
			if o.key == l.key && l.key != "" && o.id > l.id && !o.free && !l.free {
				w.failf("%d is taken before %d of the same lane", o.id, l.id)
			}
		}
	}
	return loads
}

func (w *world) takeOrphans(_, _ int) {
	n := w.s.Orphans()
	out := w.s.TakeOrphans()
	if len(out) != n || w.s.Orphans() != 0 {
		w.failf("%d orphans were announced, %d came, and %d are left", n, len(out), w.s.Orphans())
	}
}

// giveBack ends the first of those that were taken and are with the caller.
func (w *world) giveBack(a, _ int) {
	for range 1 + a%3 {
		for i, l := range w.taken {
			if w.isOrphan(l) {
				continue
			}
			w.taken = append(w.taken[:i:i], w.taken[i+1:]...)
			w.leaves(l)
			w.s.Finish(&l.Item)
			break
		}
	}
}

func (w *world) isOrphan(l *load) bool {
	for _, it := range w.s.orphans {
		if it.Of == l {
			return true
		}
	}
	return false
}

func (w *world) lose(a, b int) {
	for i, l := range w.live {
		if (i*7+a)%(3+b%9) == 0 && l.state != Taken {
			l.lost = true
		}
	}
	w.hearOfLoss()
}

func (w *world) hearOfLoss() {
	gone := w.s.Lose(func(l *load) bool { return l.lost })
	for _, it := range gone {
		if it.Of.state != Out || !it.Of.lost {
			w.failf("%d is lost, and %v", it.Of.id, it.Of.state)
		}
	}
	if left := len(w.in(Out)); left != len(gone) {
		w.failf("%d have left, and %d are given back", left, len(gone))
	}
	for _, l := range w.live {
		switch {
		case !l.lost:
		case l.state == Running && l.key != "" && !l.free && !l.swept:
			w.failf("the loss of %d was not noted", l.id)
		case l.state == Running && l.key != "" && !l.free:
			if k := w.keys[l.key]; k.runs > 0 {
				k.lost, k.hung = true, false
			}
		case l.state != Out && l.state != Running && l.state != Taken:
			w.failf("%d is lost, and %v", l.id, l.state)
		}
	}
	w.orphaned()
	for _, l := range w.in(Behind) { // what is behind a lost one does not stay
		for _, o := range w.live {
			if o == l {
				break
			}
			if o.key == l.key && o.lost && !o.free && o.was != Out && o.was != Running && o.was != Taken {
				w.failf("%d stays behind %d, which is lost", l.id, o.id)
			}
		}
	}
}

func (w *world) loseFront(_, _ int) {
	it := w.s.Front()
	if it == nil {
		return
	}
	it.Of.lost = true
	key, free := it.Of.key, it.Of.free
	if got := w.s.LoseFront(); got != it {
		w.failf("LoseFront gave another one")
	}
	w.orphaned()
	for _, l := range w.in(Behind) {
		if l.key == key && key != "" && !free {
			w.failf("%d stays behind the lost front", l.id)
		}
	}
}

// loseInBatch is a loss that the worker notices before it calls the handler.
func (w *world) loseInBatch(a, _ int) {
	l := pick(w.in(Running), a)
	if l == nil {
		return
	}
	l.lost = true
	w.s.Tear(&l.Item)
	if l.key != "" && !l.free && w.keys[l.key].runs > 1 != w.s.Torn(&l.Item) && !w.s.Torn(&l.Item) {
		w.failf("the batch of %d is not torn", l.id)
	}
}
