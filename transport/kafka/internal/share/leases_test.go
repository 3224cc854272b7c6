package share

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const testLock = 10 * time.Second

// brokerModel is what a broker knows of one partition: who holds each offset until when. It
// carries out all of a partition's part of a parcel or nothing of it, as Kafka does.
type brokerModel struct {
	held     map[int64]time.Time // by offset: when the lock ends
	accepted map[int64]Verdict   // what was carried out last
}

func (b *brokerModel) acknowledge(c *contents, now time.Time) error {
	for _, r := range c.all() {
		if !b.held[r.Offset].After(now) {
			return kerr.InvalidRecordState
		}
	}
	for _, r := range c.renewals {
		b.held[r.Offset] = now.Add(testLock)
	}
	for _, r := range c.verdicts {
		delete(b.held, r.Offset)
		b.accepted[r.Offset] = r.verdict
	}
	return nil
}

// world drives Leases with random events against models of the partitions.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	l       *Leases
	now     time.Time
	session uint64
	parts   map[Part]*brokerModel
	parcel  *Parcel
	all     []*Record          // every acquisition
	ended   map[*Record]string // how each ended
	next    int64              // offset
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), l: NewLeases(), now: time.Unix(1000, 0), session: 1,
		parts: map[Part]*brokerModel{}, ended: map[*Record]string{}}
	for num := range int32(3) {
		w.parts[Part{Num: num}] = &brokerModel{held: map[int64]time.Time{}, accepted: map[int64]Verdict{}}
	}
	w.l.Open(1)
	return w
}

func (w *world) note(out Outcome) {
	for _, r := range out.Lost {
		w.end(r, "lost")
	}
	for _, r := range out.Failed {
		w.end(r, "failed")
	}
}

func (w *world) end(r *Record, how string) {
	if was := w.ended[r]; was != "" {
		w.t.Fatalf("record %d was %s and is now %s", r.Token, was, how)
	}
	w.ended[r] = how
}

func (w *world) part() Part { return Part{Num: w.rng.Int32N(3)} }

func (w *world) open() (out []*Record) {
	for _, r := range w.all {
		if w.ended[r] == "" && r.state != stateDone {
			out = append(out, r)
		}
	}
	return out
}

// step does one random thing.
func (w *world) step() {
	switch w.rng.IntN(12) {
	case 0, 1:
		w.acquire()
	case 2, 3, 4:
		if open := w.open(); len(open) > 0 {
			_, err := w.l.Settle(open[w.rng.IntN(len(open))].Token, Verdict(1+w.rng.IntN(3)), w.now)
			if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrSettled) {
				w.t.Fatal(err)
			}
		}
	case 5, 6:
		if w.parcel == nil {
			w.parcel = w.l.Take(w.session, w.now)
		}
	case 7, 8:
		w.answer()
	case 9:
		w.now = w.now.Add(time.Duration(w.rng.Int64N(int64(testLock / 3))))
		out, _, _ := w.l.Watch(w.now)
		w.note(out)
	case 10:
		if open := w.open(); len(open) > 0 {
			done := make(chan error, 1)
			_, _ = w.l.Renew(open[w.rng.IntN(len(open))].Token, w.now, done)
		}
	case 11:
		w.disturb()
	}
}

func (w *world) acquire() {
	part := w.part()
	b := w.parts[part]
	var rs []*Record
	take := func(offset int64) {
		b.held[offset] = w.now.Add(testLock)
		rs = append(rs, &Record{Record: &kgo.Record{Offset: offset}, Part: part, Lock: testLock, Deliveries: 1})
	}
	for offset, until := range b.held { // the broker delivers again what has lapsed there
		if !until.After(w.now) {
			take(offset)
		}
	}
	for range w.rng.IntN(4) {
		w.next++
		take(w.next)
	}
	slices.SortFunc(rs, func(a, b *Record) int { return int(a.Offset - b.Offset) })
	w.all = append(w.all, rs...)
	w.note(w.l.Acquire(w.session, rs, map[Part][]ackRange{}, w.now))
}

// answer answers the parcel on its way: partition by partition, some with an error.
func (w *world) answer() {
	p := w.parcel
	if p == nil {
		return
	}
	w.parcel = nil
	for _, part := range ordered(p.parts) {
		var err error
		switch w.rng.IntN(10) {
		case 0:
			err = kerr.CoordinatorNotAvailable
		case 1:
			continue // not mentioned
		default:
			err = w.parts[part].acknowledge(p.parts[part], w.now)
		}
		w.note(w.l.Answer(p, part, err, w.now))
	}
	w.note(w.l.Sent(p, w.now))
}

// disturb breaks something at the broker.
func (w *world) disturb() {
	switch w.rng.IntN(12) {
	case 0: // the session ends
		w.note(w.l.Close(w.session, errors.New("cut")))
		w.session, w.parcel = w.session+1, nil
		w.l.Open(w.session)
		for _, b := range w.parts {
			clear(b.held)
		}
	case 1: // a leader moves
		part := w.part()
		clear(w.parts[part].held)
		w.note(w.l.Drop(w.session, part, kerr.NotLeaderForPartition))
	case 2: // the broker's clock runs ahead: a lock ends early
		for offset := range w.parts[w.part()].held {
			w.parts[w.part()].held[offset] = w.now
			break
		}
	}
}

// Whatever happens, the invariants hold, each acquisition ends in exactly one way, and a
// verdict that is confirmed is the one that the broker has carried out.
func TestLeasesKeepTheirInvariants(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 400 {
				w.step()
				if err := w.l.Check(); err != nil {
					t.Fatal(err)
				}
			}
			for range 64 { // all that can be settled comes to its end
				for _, r := range w.open() {
					_, _ = w.l.Settle(r.Token, Accept, w.now)
				}
				if w.parcel == nil {
					w.parcel = w.l.Take(w.session, w.now)
				}
				w.answer()
			}
			w.now = w.now.Add(2 * testLock)
			out, _, _ := w.l.Watch(w.now)
			w.note(out)
			if err := w.l.Check(); err != nil {
				t.Fatal(err)
			}
			if n := w.l.Len(); n > 0 || w.l.Unanswered() > 0 {
				t.Errorf("%d records are held, %d verdicts are open at the end", n, w.l.Unanswered())
			}
			for _, r := range w.all {
				if done := r.state == stateDone; done == (w.ended[r] != "") {
					t.Fatalf("record %d ended %q in state %d", r.Token, w.ended[r], r.state)
				}
			}
		})
	}
}

func acquired(t *testing.T, l *Leases, n int) []*Record {
	t.Helper()
	var rs []*Record
	for i := range n {
		rs = append(rs, &Record{Record: &kgo.Record{Offset: int64(i)}, Lock: testLock})
	}
	l.Open(1)
	l.Acquire(1, rs, nil, time.Unix(0, 0))
	return rs
}

// The broker refuses all of a partition for one record that is not held any more. Only that
// one is lost.
func TestARefusedPartLosesOnlyTheRecordThatIsWrong(t *testing.T) {
	l, now := NewLeases(), time.Unix(1, 0)
	rs := acquired(t, l, 9)
	for _, r := range rs {
		if _, err := l.Settle(r.Token, Accept, now); err != nil {
			t.Fatal(err)
		}
	}
	b := &brokerModel{held: map[int64]time.Time{}, accepted: map[int64]Verdict{}}
	for _, r := range rs {
		b.held[r.Offset] = now.Add(testLock)
	}
	b.held[4] = now
	var failed []*Record
	requests := 0
	for p := l.Take(1, now); p != nil; p = l.Take(1, now) {
		requests++
		out := l.Answer(p, Part{}, b.acknowledge(p.parts[Part{}], now), now)
		failed = append(failed, out.Failed...)
		l.Sent(p, now)
	}
	if len(failed) != 1 || failed[0].Offset != 4 || len(b.accepted) != 8 {
		t.Errorf("%d failed, %d accepted, want offset 4 and 8", len(failed), len(b.accepted))
	}
	if requests > 9 {
		t.Errorf("it took %d requests", requests)
	}
}

// Gaps that a broker could not take for now are sent again, also without a record beside them.
func TestRefusedGapsAreSentAgain(t *testing.T) {
	l, now := NewLeases(), time.Unix(0, 0)
	l.Open(1)
	gaps := []ackRange{{3, 5, gapType}}
	l.Acquire(1, nil, map[Part][]ackRange{{}: gaps}, now)
	for i, answer := range []error{kerr.CoordinatorNotAvailable, nil} {
		p := l.Take(1, now)
		if p.Empty() || !slices.Equal(p.parts[Part{}].gaps, gaps) {
			t.Fatalf("request %d does not carry the gaps", i+1)
		}
		l.Answer(p, Part{}, answer, now)
		l.Sent(p, now)
	}
	if some, _ := l.Ready(1); some {
		t.Error("gaps are sent after they were taken")
	}
}

// A lock is renewed when half of it is over, and ends here before it ends at the broker.
func TestALockIsRenewedAtItsHalfAndEndsEarly(t *testing.T) {
	l := NewLeases()
	r := acquired(t, l, 1)[0]
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	if _, renew, _ := l.Watch(at(testLock / 3)); renew != nil {
		t.Error("it is renewed after a third")
	}
	if _, renew, _ := l.Watch(at(testLock/2 + time.Second)); renew == nil {
		t.Error("it is not renewed after half")
	}
	p := l.Take(1, at(6*time.Second))
	if !p.renews {
		t.Fatal("the parcel has no renewal")
	}
	l.Answer(p, Part{}, nil, at(7*time.Second))
	l.Sent(p, at(7*time.Second))
	if out, _, _ := l.Watch(at(15 * time.Second)); len(out.Lost) > 0 {
		t.Error("it was lost in spite of the renewal")
	}
	if _, err := l.Settle(r.Token, Accept, at(15900*time.Millisecond)); !errors.Is(err, ErrLost) {
		t.Errorf("a verdict within the margin: %v, want ErrLost", err)
	}
	if out, _, _ := l.Watch(at(15900 * time.Millisecond)); len(out.Lost) != 1 {
		t.Error("it is still held at its end")
	}
}

// No number of ranges in an answer makes a record appear twice, or a gap cover a record.
func TestAcquiredRangesMakeRecordsAndGaps(t *testing.T) {
	c := contents{gaps: []ackRange{{0, 2, gapType}, {6, 6, gapType}}}
	for offset := range int64(3) {
		c.verdicts = append(c.verdicts, &Record{Record: &kgo.Record{Offset: 3 + offset}, verdict: Accept})
	}
	want := []ackRange{{0, 2, gapType}, {3, 5, int8(Accept)}, {6, 6, gapType}}
	if got := c.ranges(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
