package offsets

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/longshore-go/longshore"
)

// F-C05: an owner that stops before it has read anything passes on what it inherited: the
// records that were done, the attempts of those that were not, and the epoch of both.
func TestWhatIsInheritedIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(tr *Tracker){
		"records and attempts": func(tr *Tracker) {
			for o := int64(100); o < 200; o++ {
				if seq := tr.Add(o, 5, nil); o%10 != 0 {
					tr.Ack(seq)
				} else {
					tr.Retried(seq, int(o/10))
				}
			}
		},
		"attempts": func(tr *Tracker) { tr.Retried(tr.Add(100, 5, nil), 10); tr.Retried(tr.Add(110, 5, nil), 11) },
		"records": func(tr *Tracker) {
			tr.Add(100, 5, nil)
			tr.Ack(tr.Add(101, 5, nil))
		},
	} {
		first := New(100, -1)
		prepare(&first)
		s := first.Snapshot(DefaultBudget, testMark)
		for range 3 { // owners that do nothing
			saved, ok := Decode(s.Saved, testMark, s.Offset)
			if !ok {
				t.Fatalf("%s: cannot read %q", name, s.Saved)
			}
			next := New(s.Offset, s.Epoch)
			next.Inherit(saved)
			if again := next.Snapshot(DefaultBudget, testMark); again.Saved != s.Saved || again.Forgotten != 0 || again.Offset != s.Offset {
				t.Fatalf("%s: %+v became %+v", name, s, again)
			}
		}
	}
}

// F-C05: what an owner has read counts for itself, and what it has not read comes from the
// owner before, whichever records are open in either part.
func TestReadAndInheritedTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		const end = 3000
		share := 1 + r.IntN(40)
		first := New(0, -1)
		done, tries := map[int64]bool{}, map[int64]int{}
		for o := int64(0); o < end; o++ {
			switch seq := first.Add(o, 2, nil); {
			case r.IntN(100) >= share && o > 0:
				first.Ack(seq)
				done[o] = true
			case r.IntN(40) == 0:
				tries[o] = 2 + r.IntN(5)
				first.Retried(seq, tries[o])
			}
		}
		s := first.Snapshot(DefaultBudget, testMark)
		saved, _ := Decode(s.Saved, testMark, s.Offset)
		second := New(s.Offset, s.Epoch)
		second.Inherit(saved)
		for o := s.Offset; o < s.Offset+r.Int64N(end/2); o++ {
			if second.WasDone(o, 2) != done[o] {
				t.Fatalf("seed %d: offset %d: done %t", seed, o, !done[o])
			}
			seq := second.Add(o, 2, nil)
			if want := tries[o]; len(tries) <= MaxRetried && second.InheritedAttempt(o, 2) != max(1, want) && len(tries) > 0 {
				t.Fatalf("seed %d: offset %d at attempt %d, want %d", seed, o, second.InheritedAttempt(o, 2), want)
			}
			switch {
			case done[o] || r.IntN(2) == 0:
				second.Ack(seq)
				done[o] = true
				delete(tries, o)
			case tries[o] > 0:
				second.Retried(seq, tries[o])
			}
		}
		s = second.Snapshot(DefaultBudget, testMark)
		third, ok := Decode(s.Saved, testMark, s.Offset)
		if !ok || s.Forgotten != 0 {
			t.Fatalf("seed %d: read %t, forgotten %d", seed, ok, s.Forgotten)
		}
		for o := s.Offset; o < end; o++ {
			if third.Has(o, 2) != done[o] {
				t.Fatalf("seed %d: offset %d: done %t, saved %t", seed, o, done[o], !done[o])
			}
			if n := third.Attempt(o, 2); len(tries) <= MaxRetried && n != max(1, tries[o]) {
				t.Fatalf("seed %d: offset %d at attempt %d, want %d", seed, o, n, tries[o])
			}
		}
	}
}

// F-N04: so many records are inherited that only the list of open ones can describe them, and
// the next owner, which has read a part of them, still can.
func TestAnInheritedListIsPassedOn(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 14))
	first := New(0, -1)
	open := map[int64]bool{}
	for o := range int64(60_000) {
		if seq := first.Add(o, 1, nil); o > 0 && r.IntN(100) >= 3 {
			first.Ack(seq)
		} else {
			open[o] = true
		}
	}
	s := first.Snapshot(DefaultBudget, testMark)
	for _, reads := range []int64{0, 1000, 30_000} {
		saved, ok := Decode(s.Saved, testMark, 0)
		if !ok || s.Forgotten != 0 {
			t.Fatalf("read %t, %d forgotten", ok, s.Forgotten)
		}
		next := New(0, -1)
		next.Inherit(saved)
		for o := range reads {
			if seq := next.Add(o, 1, nil); next.WasDone(o, 1) {
				next.Ack(seq)
			}
		}
		again := next.Snapshot(DefaultBudget, testMark)
		third, ok := Decode(again.Saved, testMark, 0)
		if !ok || again.Forgotten != 0 {
			t.Fatalf("after %d: read %t, %d forgotten", reads, ok, again.Forgotten)
		}
		for o := range int64(60_000) {
			if third.Has(o, 1) == open[o] {
				t.Fatalf("after %d: offset %d: open %t", reads, o, open[o])
			}
		}
	}
}

// Without room nothing is saved, and the snapshot says how much the next owner repeats.
func TestForgottenIsCounted(t *testing.T) {
	t.Parallel()
	tr := New(0, -1)
	for o := range int64(1000) {
		if seq := tr.Add(2*o, 1, nil); o%7 != 0 { // a gap after each
			tr.Ack(seq)
		}
	}
	done := tr.Done()
	if done != 1000-143 || tr.Unfinished() != 143 || tr.Len() != 1000 {
		t.Fatalf("%d done, %d not", done, tr.Unfinished())
	}
	for _, budget := range []int{0, 30, 60, 200, DefaultBudget} {
		s := tr.Snapshot(budget, testMark)
		saved, _ := Decode(s.Saved, testMark, s.Offset)
		kept := 0
		for o := range int64(1000) {
			if saved.Has(2*o, 1) {
				kept++
			}
		}
		if s.Forgotten != done-kept || budget == 0 && s.Saved != "" || budget == DefaultBudget && s.Forgotten != 0 {
			t.Errorf("with %d characters %d of %d are kept, and %d said to be forgotten", budget, kept, done, s.Forgotten)
		}
	}
	if s := tr.Snapshot(0, Mark{topic: 1}); s.Saved != "" || s.Offset != 0 || s.Forgotten != done {
		t.Errorf("%+v", s)
	}
}

// F-C04: what a tracker says of single records.
func TestTrackerOfSingleRecords(t *testing.T) {
	t.Parallel()
	tr := New(10, 3)
	if tr.Base() != 10 || tr.Epoch() != 3 || tr.Read() != 10 || tr.Len() != 0 || tr.Has(0) {
		t.Fatalf("a new one is %+v", tr)
	}
	ds := longshore.NewDeliveries(t.Context(), nil, 0, 4)
	var seqs []uint64
	for i, epoch := range []int32{4, 4, 5, 5} {
		seqs = append(seqs, tr.Add(int64(20+10*i), epoch, &ds[i]))
	}
	if tr.Head() != seqs[0] || tr.Tail() != seqs[3]+1 || tr.Read() != 51 || tr.Offset(seqs[2]) != 40 || tr.Held(seqs[1]) != &ds[1] {
		t.Fatalf("%+v", tr)
	}
	if !tr.Has(seqs[0]) || !tr.Has(seqs[3]) || tr.Has(seqs[3]+1) {
		t.Error("it has others than were added")
	}
	version := tr.Version()
	tr.Retried(seqs[1], 1)
	if tr.Version() != version || tr.InheritedAttempt(20, 4) != 0 {
		t.Error("a first attempt is noted")
	}
	tr.Retried(seqs[1], 2)
	if tr.Version() == version {
		t.Error("an attempt is not committed")
	}
	version = tr.Version()
	tr.Hold(seqs[1], nil)
	if got := tr.Open(); !slices.Equal(got, []*longshore.Delivery{&ds[0], &ds[2], &ds[3]}) {
		t.Errorf("open are %v", got)
	}
	tr.Ack(seqs[1])
	if tr.Version() == version || tr.Base() != 10 || tr.Epoch() != 3 || len(tr.attempts) != 0 {
		t.Errorf("after one above the head: %+v", tr)
	}
	tr.Ack(seqs[0])
	if tr.Base() != 31 || tr.Epoch() != 4 || tr.Head() != seqs[2] || tr.Done() != 0 || tr.Held(seqs[0]) != nil {
		t.Errorf("up to the change of epoch: base %d epoch %d", tr.Base(), tr.Epoch())
	}
	tr.Ack(seqs[3])
	if tr.Held(seqs[3]) != nil || tr.Held(seqs[2]) != &ds[2] {
		t.Error("what is done is still held, or what is not is not")
	}
	tr.Ack(seqs[2])
	if tr.Base() != 51 || tr.Epoch() != 5 || tr.Len() != 0 || len(tr.epochs) != 1 {
		t.Errorf("at the end: base %d epoch %d, epochs %v", tr.Base(), tr.Epoch(), tr.epochs)
	}
	version = tr.Version()
	if tr.Touch(); tr.Version() == version {
		t.Error("a touch is not committed")
	}
}

// A ring of the size that is kept is kept.
func TestSmallRingIsKept(t *testing.T) {
	t.Parallel()
	tr := New(0, -1)
	for o := range int64(maxIdleRing) {
		tr.Add(o, 0, nil)
	}
	for seq := range uint64(maxIdleRing) {
		tr.Ack(seq)
	}
	if len(tr.offsets) != maxIdleRing || tr.Base() != maxIdleRing {
		t.Errorf("a ring of %d, watermark %d", len(tr.offsets), tr.Base())
	}
}

// F-N04: the bound counts from the watermark, ends with what was inherited, and does not
// count where nothing can be saved.
func TestBoundOfATracker(t *testing.T) {
	t.Parallel()
	const base, most = 1 << 30, 1 << 20
	free := handOut(0, 0, roomFor(DefaultBudget), most)
	tr := New(base, -1)
	for name, c := range map[string]struct{ got, want int }{
		"a new one":             {tr.CanTake(base, DefaultBudget, most), free},
		"few":                   {tr.CanTake(base, DefaultBudget, 5), 5},
		"none":                  {tr.CanTake(base, DefaultBudget, 0), 0},
		"less than none":        {tr.CanTake(base, DefaultBudget, -7), -7},
		"a broker without text": {tr.CanTake(base, 0, most), most},
		"after a gap":           {tr.CanTake(base+1000, DefaultBudget, most), handOut(0, 1000, roomFor(DefaultBudget), most)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
	zero, unknown := New(0, -1), New(-1, -1)
	if n := zero.CanTake(0, DefaultBudget, most); n != free {
		t.Errorf("from the first offset on %d, want %d", n, free)
	}
	if n := unknown.CanTake(-1, DefaultBudget, most); n != most {
		t.Errorf("of an unknown position %d", n)
	}
	heir := New(base, -1)
	heir.Inherit(Saved{runs: []span{{from: base + 1, to: base + 200_000}}, epoch: 1})
	if n := heir.CanTake(base+199_999, DefaultBudget, most); n != most {
		t.Errorf("within what was inherited %d", n)
	}
	if n := heir.CanTake(base+200_000, DefaultBudget, most); n == most {
		t.Errorf("after what was inherited %d", n)
	}
	for range 3000 {
		tr.Add(tr.Read(), 1, nil)
	}
	span := int64(0)
	for canDescribe(3001, span+1, roomFor(DefaultBudget)) {
		span++
	}
	for d, want := range map[int64]bool{span - 1: true, span: false} {
		if got := tr.CanTakeUpTo(base+d, 1, DefaultBudget); got != want {
			t.Errorf("up to %d offsets: %t", d, got)
		}
		if !tr.CanTakeUpTo(base+d, 1, 0) {
			t.Error("a bound without text")
		}
	}
	if !heir.CanTakeUpTo(base+199_999, most, DefaultBudget) || heir.CanTakeUpTo(base+200_000, most, DefaultBudget) {
		t.Error("the end of what was inherited does not count")
	}
}
