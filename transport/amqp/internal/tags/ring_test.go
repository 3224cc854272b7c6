package tags

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/longshore-go/longshore"
)

// broker is the other side of a channel: it closes the channel over a tag that is not
// outstanding.
type broker struct {
	t    *testing.T
	out  map[uint64]bool
	done map[uint64]How
}

func (b *broker) settle(tag uint64, how How) {
	if !b.out[tag] {
		b.t.Fatalf("406: tag %d is unknown", tag)
	}
	delete(b.out, tag)
	b.done[tag] = how
}

func (b *broker) apply(s *Batch) {
	if s.Empty() != (len(s.Alone)+len(s.Islands) == 0 && s.UpTo == 0) {
		b.t.Fatalf("empty is %v of %+v", s.Empty(), s)
	}
	for _, x := range s.Alone {
		b.settle(x.Tag, x.How)
	}
	if s.UpTo > 0 {
		below := 0
		for tag := range b.out {
			if tag < s.UpTo && s.Multiple {
				b.settle(tag, Ack)
				below++
			}
		}
		if s.Multiple && below == 0 {
			b.t.Fatalf("multiple up to %d stands for one tag", s.UpTo)
		}
		b.settle(s.UpTo, Ack)
	}
	for i, tag := range s.Islands {
		if i > 0 && s.Islands[i-1] > tag || tag < s.UpTo {
			b.t.Fatalf("islands %v above %d are not in order", s.Islands, s.UpTo)
		}
		b.settle(tag, Ack)
	}
}

// model is the ring as plain maps.
type model struct {
	t       *testing.T
	r       *rand.Rand
	ring    Ring
	b       *broker
	pass    Batch
	state   map[uint64]State // of every tag that has arrived and is not sent
	how     map[uint64]How
	owned   map[uint64]bool // somebody waits for the outcome
	order   []uint64        // returns and rejections in the order of their settlements
	old     map[uint64]bool // acks that one pass has seen
	handed  uint64          // the next tag to hand out
	top     uint64
	written []uint64
}

func newModel(t *testing.T, seed uint64) *model {
	return &model{t: t, r: rand.New(rand.NewPCG(seed, 7)), ring: New(), b: &broker{t: t, out: map[uint64]bool{}, done: map[uint64]How{}},
		state: map[uint64]State{}, how: map[uint64]How{}, owned: map[uint64]bool{}, old: map[uint64]bool{}, handed: 1, top: 1}
}

func delivery(tag uint64) *longshore.Delivery {
	return longshore.NewDelivery(nil, nil, tag) //nolint:staticcheck // no handler gets it
}

func verdict(tag uint64) longshore.Settlement { return longshore.Settlement{Attempt: int(tag)} }

func (m *model) in(states ...State) (tags []uint64) {
	for tag, s := range m.state {
		if slices.Contains(states, s) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// pick is one of the tags in these states, 0 if there is none.
func (m *model) pick(states ...State) uint64 {
	if tags := m.in(states...); len(tags) > 0 {
		return tags[m.r.IntN(len(tags))]
	}
	return 0
}

func (m *model) base() uint64 {
	if len(m.state) == 0 {
		return m.top
	}
	return slices.Min(m.in(Open, Copying, Kept, Acked, Alone))
}

func (m *model) arrive() {
	n := 1 + m.r.IntN(4)
	first := m.top
	for _, i := range m.r.Perm(n) { // a little out of order, as from several consumers
		tag := first + uint64(i)
		m.b.out[tag] = true
		m.ring.Arrive(tag, delivery(tag))
		m.state[tag], m.owned[tag] = Open, true
	}
	m.top = first + uint64(n)
}

func (m *model) take() {
	n := m.r.IntN(6)
	var want []uint64
	at := max(m.handed, m.base())
	for ; at < m.top && len(want) < n; at++ {
		if m.state[at] == Open {
			want = append(want, at)
		}
	}
	var got []uint64
	for _, d := range m.ring.Take(nil, n) {
		got = append(got, d.Token())
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("took %v, want %v", got, want)
	}
	m.handed = max(at, m.handed)
}

func (m *model) settle(tag uint64, how How) {
	m.ring.Accept(tag, verdict(tag), how)
	m.how[tag] = how
	if how == Ack {
		m.state[tag] = Acked
		return
	}
	m.state[tag] = Alone
	m.order = append(m.order, tag)
}

func (m *model) drain() {
	want := []uint64{}
	for _, tag := range m.in(Open) {
		if tag >= max(m.handed, m.base()) {
			want = append(want, tag)
		}
	}
	got := []uint64{}
	m.ring.Drain(func(tag uint64, d *longshore.Delivery) {
		if d.Token() != tag {
			m.t.Fatalf("drained %d as %d", d.Token(), tag)
		}
		got = append(got, tag)
		switch m.r.IntN(3) {
		case 0:
			m.settle(tag, Nack)
			m.ring.Disown(tag)
			m.owned[tag] = false
		case 1:
			m.ring.Copy(tag)
			m.state[tag] = Copying
		case 2:
			m.ring.Keep(tag)
			m.state[tag], m.owned[tag] = Kept, false
		}
	})
	if !slices.Equal(got, want) {
		m.t.Fatalf("drained %v, want %v", got, want)
	}
	m.handed = m.top
}

func (m *model) collect() {
	all, keep := m.r.IntN(3) == 0, m.r.IntN(3) == 0
	want := map[uint64]How{}
	kept := []uint64{}
	singles := []Single{}
	for _, tag := range m.order {
		if keep && m.how[tag] == Nack {
			kept = append(kept, tag)
			continue
		}
		want[tag] = m.how[tag]
		singles = append(singles, Single{tag, m.how[tag]})
		m.written = append(m.written, tag)
		delete(m.state, tag)
	}
	m.order = kept
	stop := m.base() // of the contiguous acks
	for ; stop < m.top && (m.state[stop] == Acked || m.state[stop] == Absent); stop++ {
		if m.state[stop] == Acked {
			want[stop] = Ack
		}
	}
	for _, tag := range m.in(Acked) {
		switch {
		case tag < stop:
		case all || m.old[tag]:
			want[tag] = Ack
		default:
			m.old[tag] = true
		}
	}
	before := len(m.b.done)
	m.ring.Collect(&m.pass, all, keep)
	if !slices.Equal(m.pass.Alone, singles) {
		m.t.Fatalf("alone %v, want %v", m.pass.Alone, singles)
	}
	m.b.apply(&m.pass)
	if len(m.b.done)-before != len(want) {
		m.t.Fatalf("%d settled in a pass, want %v", len(m.b.done)-before, want)
	}
	for _, tag := range slices.Sorted(mapKeys(want)) {
		if how, ok := m.b.done[tag]; !ok || how != want[tag] {
			m.t.Fatalf("tag %d is settled %v by %d, want %d", tag, ok, how, want[tag])
		}
		if want[tag] == Ack {
			m.written = append(m.written, tag)
			delete(m.state, tag)
		}
	}
}

func mapKeys(m map[uint64]How) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for tag := range m {
			if !yield(tag) {
				return
			}
		}
	}
}

// step does one random thing to the ring and to the model.
func (m *model) step() {
	switch k := m.r.IntN(20); {
	case k < 5 && len(m.state) < 200:
		m.arrive()
	case k < 8:
		m.take()
	case k < 12:
		if tag := m.pick(Open, Copying); tag > 0 {
			m.settle(tag, []How{Ack, Ack, Ack, Ack, Nack, Reject}[m.r.IntN(6)])
		}
	case k == 12:
		if tag := m.pick(Open); tag > 0 {
			m.ring.Copy(tag)
			m.state[tag] = Copying
		}
	case k == 13:
		if tag := m.pick(Copying); tag > 0 {
			m.ring.Reopen(tag)
			m.state[tag] = Open
		}
	case k == 14 && m.r.IntN(4) == 0:
		m.one()
	case k == 15 && m.r.IntN(20) == 0:
		m.drain()
	case k == 16 && m.r.IntN(10) == 0:
		for _, tag := range m.order {
			if m.how[tag] == Nack {
				m.state[tag], m.owned[tag] = Kept, false
			}
		}
		m.order = slices.DeleteFunc(m.order, func(tag uint64) bool { return m.how[tag] == Nack })
		m.ring.KeepReturned()
	case k == 17 && m.r.IntN(5) == 0:
		m.ring.Confirm()
		m.written = nil
	default:
		m.collect()
	}
	m.check()
}

// one forgets or keeps a tag, or finds nothing where nothing is.
func (m *model) one() {
	tag := m.pick(Open)
	if tag == 0 {
		return
	}
	if m.r.IntN(2) == 0 {
		m.ring.Forget(tag)
		delete(m.state, tag)
		delete(m.b.out, tag) // the broker forgot it when it sent it
		return
	}
	m.ring.Keep(tag)
	m.state[tag], m.owned[tag] = Kept, false
}

// check compares everything that can be seen of the ring, and its invariants.
func (m *model) check() {
	m.t.Helper()
	r := &m.ring
	for tag := max(m.base(), 3) - 3; tag <= m.top+1; tag++ {
		d, state := r.Find(tag)
		if state != m.state[tag] || (d != nil) != (state != Absent && m.owned[tag]) || d != nil && d.Token() != tag {
			m.t.Fatalf("tag %d is %d (%v), want %d", tag, state, d, m.state[tag])
		}
	}
	tags := m.in(Open, Copying, Kept, Acked, Alone)
	highest := uint64(0)
	if len(tags) > 0 {
		highest = tags[len(tags)-1]
	}
	from := uint64(m.r.IntN(int(m.top) + 2))
	above := 0
	for _, tag := range tags {
		if tag >= from {
			above++
		}
	}
	for what, pair := range map[string][2]uint64{
		"outstanding": {uint64(r.Outstanding()), uint64(len(tags))}, "from": {uint64(r.OutstandingFrom(from)), uint64(above)},
		"unsent": {uint64(r.Unsent()), uint64(len(m.in(Acked)))}, "unconfirmed": {uint64(r.Unconfirmed()), uint64(len(m.written))},
		"highest": {r.Highest(), highest}, "top": {r.Top(), m.top}, "buffered": {uint64(r.Buffered()), m.top - max(m.handed, r.base)},
		"oldest": {token(r.Oldest()), m.first(0, m.handed, Open, Copying)}, "oldest buffered": {token(r.OldestBuffered()), m.first(m.handed, m.top, Open)},
		"size": {uint64(len(r.slots) & (len(r.slots) - 1)), 0},
	} {
		if pair[0] != pair[1] {
			m.t.Fatalf("%s is %d, want %d", what, pair[0], pair[1])
		}
	}
	if r.base > m.base() || uint64(len(r.slots)) < r.top-r.base {
		m.t.Fatalf("base %d of %d, %d slots for %d", r.base, m.base(), len(r.slots), r.top-r.base)
	}
}

// first is the lowest tag in these states that somebody waits for.
func (m *model) first(from, below uint64, states ...State) uint64 {
	for _, tag := range m.in(states...) {
		if tag >= from && tag < below && m.owned[tag] {
			return tag
		}
	}
	return 0
}

func token(d *longshore.Delivery) uint64 {
	if d == nil {
		return 0
	}
	return d.Token()
}

// end compares what is left behind.
func (m *model) end() {
	var lost, unsent, unconfirmed []uint64
	for _, tag := range m.in(Open, Copying) {
		if tag < m.handed && m.owned[tag] {
			lost = append(lost, tag)
		}
	}
	for _, tag := range m.in(Acked, Alone) {
		if m.owned[tag] {
			unsent = append(unsent, tag)
		}
	}
	for _, tag := range m.written {
		if m.owned[tag] {
			unconfirmed = append(unconfirmed, tag)
		}
	}
	e := m.ring.End()
	var gotLost []uint64
	for _, d := range e.Lost {
		gotLost = append(gotLost, d.Token())
	}
	pending := func(ps []Pending) (tags []uint64) {
		for _, p := range ps {
			if p.Settlement.Attempt != int(p.Delivery.Token()) {
				m.t.Errorf("tag %d is reported with the verdict of %d", p.Delivery.Token(), p.Settlement.Attempt)
			}
			tags = append(tags, p.Delivery.Token())
		}
		return tags
	}
	if got, want := [][]uint64{gotLost, pending(e.Unsent), pending(e.Unconfirmed)}, [][]uint64{lost, unsent, unconfirmed}; !reflect.DeepEqual(got, want) {
		m.t.Errorf("left behind %v, want %v", got, want)
	}
	if !reflect.DeepEqual(m.ring, New()) {
		m.t.Error("an ended ring is not empty")
	}
}

// Random arrivals over several consumers, random settlements, copies, returns and passes:
// exactly what was settled is settled at the broker, in the form that was asked, and
// everything that can be seen of the ring is what plain maps say.
func TestRingDoesWhatPlainMapsSay(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			for range 300 {
				m.step()
			}
			m.end()
		})
	}
}

// A slow head does not keep what was done above it unsent, and no more comes in one pass
// than was asked for.
func TestAcksAboveASlowDeliveryAreSent(t *testing.T) {
	ring, pass := New(), &Batch{}
	for tag := uint64(1); tag <= 100; tag++ {
		ring.Arrive(tag, nil)
		if tag > 1 {
			ring.Accept(tag, longshore.Settlement{}, Ack)
		}
	}
	ring.Collect(pass, false, false)
	first := len(pass.Islands)
	ring.Collect(pass, false, false)
	if pass.UpTo != 0 || first != 0 || len(pass.Islands) != 99 || len(ring.slots) != 128 {
		t.Errorf("upTo %d, islands %d then %d, ring of %d", pass.UpTo, first, len(pass.Islands), len(ring.slots))
	}
	ring.Accept(1, longshore.Settlement{}, Ack)
	ring.Collect(pass, false, false)
	if pass.UpTo != 1 || pass.Multiple || ring.base != 101 {
		t.Errorf("then upTo %d multiple %v base %d", pass.UpTo, pass.Multiple, ring.base)
	}
}

// Deliveries are handed out in the order of their tags, whichever consumer was quicker.
func TestTagsAreHandedOutInOrder(t *testing.T) {
	ring := New()
	ring.Arrive(2, delivery(2))
	if got := ring.Take(nil, 5); len(got) != 0 || ring.Buffered() != 2 {
		t.Fatalf("tag 2 was handed out before tag 1")
	}
	ring.Arrive(1, delivery(1))
	got := ring.Take(nil, 5)
	if len(got) != 2 || got[0].Token() != 1 || got[1].Token() != 2 {
		t.Errorf("handed out %v", got)
	}
}

// What is held is not handed out and keeps nothing behind it back; a gap does.
func TestHeldTagsArePassedOver(t *testing.T) {
	ring := New()
	ring.Arrive(1, delivery(1))
	ring.Hold(1)
	if ring.Buffered() != 0 {
		t.Error("a held tag counts as buffered")
	}
	ring.Arrive(3, delivery(3))
	ring.Hold(3)
	ring.Arrive(2, delivery(2))
	ring.Hold(2)
	ring.Hold(9) // never came
	if got := ring.Take(nil, 5); len(got) != 0 || ring.Buffered() != 0 || ring.Outstanding() != 3 || ring.Highest() != 3 {
		t.Errorf("handed out %v, buffered %d, outstanding %d up to %d", got, ring.Buffered(), ring.Outstanding(), ring.Highest())
	}
	ring.Arrive(4, delivery(4))
	if got := ring.Take(nil, 5); len(got) != 1 || got[0].Token() != 4 {
		t.Errorf("handed out %v", got)
	}
}

// A tag that comes once more after it was sent changes nothing.
func TestTagBelowTheBaseIsIgnored(t *testing.T) {
	ring, pass := New(), &Batch{}
	ring.Arrive(1, delivery(1))
	ring.Accept(1, longshore.Settlement{}, Ack)
	ring.Collect(pass, true, false)
	ring.Arrive(1, delivery(1))
	ring.Disown(1)
	if _, state := ring.Find(1); state != Absent || ring.Outstanding() != 0 || ring.Top() != 2 || ring.OutstandingFrom(1) != 0 {
		t.Errorf("state %d, outstanding %d, top %d", state, ring.Outstanding(), ring.Top())
	}
}

// The ring is as large as what it holds, however many tags have passed through it.
func TestRingGrowsOnlyWithWhatItHolds(t *testing.T) {
	ring, pass := New(), &Batch{}
	for tag := uint64(1); tag <= 1000; tag++ {
		ring.Arrive(tag, delivery(tag))
		ring.Accept(tag, longshore.Settlement{}, Ack)
		if tag%firstSize == 0 {
			ring.Collect(pass, true, false)
		}
	}
	if len(ring.slots) != firstSize {
		t.Errorf("%d slots for at most %d tags", len(ring.slots), firstSize)
	}
	ring.Confirm()
	for _, p := range ring.written[:cap(ring.written)] {
		if p.Delivery != nil {
			t.Fatal("a confirmed settlement keeps its delivery in memory")
		}
	}
}

// What is forgotten makes room as what is sent does.
func TestForgottenTagsLeaveTheRing(t *testing.T) {
	ring := New()
	for tag := uint64(1); tag <= 1000; tag++ {
		ring.Arrive(tag, delivery(tag))
		ring.Forget(tag)
	}
	if len(ring.slots) != firstSize || ring.Outstanding() != 0 || ring.Buffered() != 0 {
		t.Errorf("%d slots, %d outstanding, %d buffered", len(ring.slots), ring.Outstanding(), ring.Buffered())
	}
}

// A slot that is used again by a later tag shows nothing of the earlier one: a gap there is
// a gap.
func TestReusedSlotsAreEmpty(t *testing.T) {
	ring, pass := New(), &Batch{}
	for tag := uint64(1); tag <= firstSize; tag++ {
		ring.Arrive(tag, delivery(tag))
		ring.Accept(tag, longshore.Settlement{}, Ack)
	}
	ring.Collect(pass, true, false)
	ring.Arrive(firstSize+2, delivery(firstSize+2))
	if got := ring.Take(nil, 5); len(got) != 0 {
		t.Errorf("%d was handed out before the tag below it", got[0].Token())
	}
	ring.Collect(pass, true, false)
	ring.Arrive(firstSize+1, delivery(firstSize+1))
	if got := ring.Take(nil, 5); len(got) != 2 {
		t.Errorf("%d handed out of 2", len(got))
	}
}

// A ring whose slots are all taken hands out each delivery once: the slot behind the highest
// tag is that of the lowest.
func TestAFullRingHandsOutNothingTwice(t *testing.T) {
	r := New()
	for tag := uint64(1); tag <= firstSize; tag++ {
		r.Arrive(tag, &longshore.Delivery{})
	}
	if got := r.Take(nil, firstSize); len(got) != firstSize {
		t.Fatalf("%d deliveries of %d", len(got), firstSize)
	}
	if again := r.Take(nil, 1); len(again) != 0 {
		t.Errorf("%d more, although all are out", len(again))
	}
}
