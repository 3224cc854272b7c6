package offsets

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the Tracker as one would write it without caring for speed.
type model struct {
	start   int64
	offsets []int64
	epochs  []int32
	done    []bool
}

func (m *model) watermark() (offset int64, epoch int32, first int) {
	offset, epoch = m.start, -1
	for i, o := range m.offsets {
		if !m.done[i] {
			return offset, epoch, i
		}
		offset, epoch = o+1, m.epochs[i]
	}
	return offset, epoch, len(m.offsets)
}

// F-C04: offsets with gaps of any size, acks in any order: the watermark is the
// first that is not done, at every moment, and at the end it is the last + 1. What
// is saved covers nothing that is not done, whatever room it has.
func TestGapsAndAnyOrderOfAcks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &model{start: r.Int64N(1000)}
		tr := New(m.start, -1)
		var open []uint64
		next, epoch := m.start+r.Int64N(3), int32(0)
		gap, window := 1+r.Int64N(6), 1+r.IntN(300)
		for range 300 {
			switch {
			case tr.Len() < window && r.IntN(2) == 0:
				if r.IntN(50) == 0 {
					epoch++
				}
				seq := tr.Add(next, epoch, nil)
				if int(seq) != len(m.offsets) {
					t.Fatalf("seed %d: sequence %d, want %d", seed, seq, len(m.offsets))
				}
				m.offsets, m.epochs, m.done = append(m.offsets, next), append(m.epochs, epoch), append(m.done, false)
				open = append(open, seq)
				next += 1 + r.Int64N(gap)
			case len(open) > 0 && r.IntN(10) == 0:
				tr.Retried(open[r.IntN(len(open))], 2+r.IntN(3))
			case len(open) > 0:
				i := r.IntN(len(open))
				tr.Ack(open[i])
				m.done[open[i]] = true
				open = slices.Delete(open, i, i+1)
			}
			if offset, _, _ := m.watermark(); tr.base != offset {
				t.Fatalf("seed %d: base %d, want %d", seed, tr.base, offset)
			}
			if r.IntN(20) == 0 {
				m.compare(t, seed, &tr, r.IntN(300))
			}
		}
		r.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		for _, seq := range open {
			tr.Ack(seq)
			m.done[seq] = true
		}
		m.compare(t, seed, &tr, 4000)
		if n := len(m.offsets); n > 0 && tr.base != m.offsets[n-1]+1 || tr.Len() != 0 {
			t.Fatalf("seed %d: at the end base %d, %d open", seed, tr.base, tr.Len())
		}
	}
}

func (m *model) compare(t *testing.T, seed uint64, tr *Tracker, budget int) {
	t.Helper()
	topic := Mark{topic: 7}
	offset, epoch, first := m.watermark()
	s := tr.Snapshot(budget, topic)
	if s.Offset != offset || s.Epoch != epoch {
		t.Fatalf("seed %d: commits %d epoch %d, want %d epoch %d", seed, s.Offset, s.Epoch, offset, epoch)
	}
	if len(s.Saved) > budget {
		t.Fatalf("seed %d: %d characters saved, the budget is %d", seed, len(s.Saved), budget)
	}
	if s.Saved == "" {
		return
	}
	saved, ok := Decode(s.Saved, topic, s.Offset)
	if !ok {
		t.Fatalf("seed %d: cannot read what was saved", seed)
	}
	for i := first; i < len(m.offsets); i++ {
		if n := saved.attempts[m.offsets[i]]; n > 0 && n != tr.attempts[uint64(i)] {
			t.Fatalf("seed %d: offset %d is saved at attempt %d, want %d", seed, m.offsets[i], n, tr.attempts[uint64(i)])
		}
		if saved.Has(m.offsets[i], m.epochs[i]) && !m.done[i] {
			t.Fatalf("seed %d: offset %d is not done and would be skipped", seed, m.offsets[i])
		}
	}
}

// With room enough everything that is done is saved.
func TestAllThatIsDoneIsSaved(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		tr := New(100, -1)
		var done []int64
		offset := int64(100)
		for i := range 500 {
			seq := tr.Add(offset, 3, nil)
			if i > 0 && r.IntN(4) > 0 {
				tr.Ack(seq)
				done = append(done, offset)
			}
			offset += 1 + r.Int64N(3)
		}
		s := tr.Snapshot(4096, Mark{topic: 1})
		saved, ok := Decode(s.Saved, Mark{topic: 1}, s.Offset)
		if !ok {
			t.Fatalf("seed %d: cannot read %q", seed, s.Saved)
		}
		for _, o := range done {
			if !saved.Has(o, 3) {
				t.Fatalf("seed %d: offset %d is done and not saved", seed, o)
			}
		}
	}
}

// F-C04, the two orders that have been wrong elsewhere.
func TestGapsInTwoOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ offsets, acks []int64 }{
		{[]int64{0, 2, 4, 6}, []int64{0, 2, 6, 4}},
		{[]int64{0, 1, 2, 3}, []int64{0, 2, 1, 3}},
	} {
		tr := New(0, -1)
		seq := map[int64]uint64{}
		for _, o := range c.offsets {
			seq[o] = tr.Add(o, 0, nil)
		}
		for _, o := range c.acks {
			tr.Ack(seq[o])
		}
		if want := c.offsets[3] + 1; tr.base != want {
			t.Errorf("offsets %v acks %v: base %d, want %d", c.offsets, c.acks, tr.base, want)
		}
	}
}

// The sizes which the research page measured: any pattern over 4096 records fits.
func TestWhatIsSavedStaysSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		open   func(r *rand.Rand, i int) bool
		window int
		limit  int
	}{
		{"stuck head", func(_ *rand.Rand, i int) bool { return i == 0 }, 16384, 40},
		{"1 %", func(r *rand.Rand, i int) bool { return i == 0 || r.IntN(100) == 0 }, 4096, 170},
		{"half", func(r *rand.Rand, i int) bool { return i == 0 || r.IntN(2) == 0 }, 4096, 720},
		{"half of 16384", func(r *rand.Rand, i int) bool { return i == 0 || r.IntN(2) == 0 }, 16384, 2766},
	} {
		r := rand.New(rand.NewPCG(1, 3))
		tr := New(1<<40, -1)
		for i := range c.window {
			if seq := tr.Add(1<<40+int64(i), 5, nil); !c.open(r, i) {
				tr.Ack(seq)
			}
		}
		s := tr.Snapshot(4000, Mark{topic: 9})
		saved, ok := Decode(s.Saved, Mark{topic: 9}, s.Offset)
		if !ok || len(s.Saved) > c.limit {
			t.Errorf("%s: %d characters (readable: %t), at most %d", c.name, len(s.Saved), ok, c.limit)
		}
		covered := 0
		for i := range c.window {
			if saved.Has(1<<40+int64(i), 5) {
				covered++
			}
		}
		if covered != int(tr.island) {
			t.Errorf("%s: %d of %d covered", c.name, covered, tr.island)
		}
	}
}

// F-C05: text about another log, another position, a reused offset, or cut.
func TestForeignSavedStateIsIgnored(t *testing.T) {
	t.Parallel()
	tr := New(10, -1)
	for i := range int64(20) {
		if seq := tr.Add(10+i, 4, nil); i%3 != 0 {
			tr.Ack(seq)
		}
	}
	s := tr.Snapshot(4000, Mark{topic: 1})
	good, ok := Decode(s.Saved, Mark{topic: 1}, s.Offset)
	if !ok || !good.Has(11, 4) {
		t.Fatal("the text itself must be good")
	}
	if again, _ := Decode(s.Saved, Mark{topic: 1}, s.Offset); again.Has(11, 5) {
		t.Error("a record of a later epoch is another record")
	}
	for name, c := range map[string]struct {
		text  string
		topic uint32
		base  int64
	}{
		"another topic":       {s.Saved, 2, s.Offset},
		"a translated offset": {s.Saved, 1, s.Offset + 1},
		"no offset":           {s.Saved, 1, -1},
		"cut":                 {s.Saved[:len(s.Saved)-1], 1, s.Offset},
		"longer":              {s.Saved + "A", 1, s.Offset},
		"a member id":         {"kgo-1234", 1, s.Offset},
		"another version":     {"ls1." + s.Saved[4:], 1, s.Offset},
		"Parallel Consumer":   {"bAAQAA==", 1, s.Offset},
		"empty":               {"", 1, s.Offset},
		"only the prefix":     {prefix, 1, s.Offset},
	} {
		if got, ok := Decode(c.text, Mark{topic: c.topic}, c.base); ok || len(got.runs) > 0 {
			t.Errorf("%s: read as %+v", name, got.runs)
		}
	}
}

// F-C05
func FuzzSavedState(f *testing.F) {
	f.Add("ls2.AAAA", int64(0))
	tr := New(10, -1)
	for i := range int64(100) {
		if seq := tr.Add(10+i, 4, nil); i%3 != 0 {
			tr.Ack(seq)
		}
	}
	f.Add(tr.Snapshot(4000, Mark{topic: 1}).Saved, int64(10))
	f.Fuzz(func(t *testing.T, text string, base int64) {
		s, ok := Decode(text, Mark{topic: 1}, base)
		if !ok {
			return
		}
		at := base
		for _, r := range s.runs {
			if r.from < at || r.to <= r.from {
				t.Fatalf("runs %+v from base %d", s.runs, base)
			}
			at = r.to
		}
	})
}

func BenchmarkTracker(b *testing.B) {
	b.ReportAllocs()
	tr := New(0, -1)
	for i := range b.N {
		tr.Ack(tr.Add(int64(i), 0, nil))
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	tr := New(0, -1)
	for i := range 4096 {
		if seq := tr.Add(int64(i), 0, nil); i > 0 && r.IntN(100) > 0 {
			tr.Ack(seq)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		tr.Snapshot(4000, Mark{topic: 1})
	}
}

// What an earlier owner had done beyond what this one has read is in its commits
// too: two stops in a row forget nothing. After a later leader epoch it is not, as
// the offsets may have been given out again.
func TestInheritedStateIsSavedAgain(t *testing.T) {
	t.Parallel()
	first := New(100, 1)
	head := first.Add(100, 3, nil)
	for o := int64(101); o < 1000; o++ {
		first.Ack(first.Add(o, 3, nil))
	}
	first.Retried(first.Add(1000, 3, nil), 4)
	_ = head
	for name, c := range map[string]struct {
		epoch int32
		want  bool
	}{"the same epoch": {3, true}, "a later one": {4, false}} {
		s := first.Snapshot(4000, Mark{topic: 7})
		second := New(s.Offset, s.Epoch)
		second.saved, _ = Decode(s.Saved, Mark{topic: 7}, s.Offset)
		second.Ack(second.Add(100, c.epoch, nil)) // the head is done, and ten behind it are read
		for o := int64(101); o < 111; o++ {
			if !second.saved.Has(o, 3) {
				t.Fatalf("%s: %d is not known", name, o)
			}
			second.Ack(second.Add(o, c.epoch, nil))
		}
		s = second.Snapshot(4000, Mark{topic: 7})
		third, ok := Decode(s.Saved, Mark{topic: 7}, s.Offset)
		if s.Offset != 111 || ok != c.want {
			t.Fatalf("%s: commits %d, saved %v", name, s.Offset, ok)
		}
		if !c.want {
			continue
		}
		for o := int64(111); o < 1000; o++ {
			if !third.Has(o, 3) {
				t.Fatalf("%s: %d is forgotten", name, o)
			}
		}
		if third.Has(1000, 3) || third.Attempt(1000, 3) != 4 {
			t.Errorf("%s: the one that waits is done %v, at attempt %d", name, third.Has(1000, 3), third.Attempt(1000, 3))
		}
	}
}
