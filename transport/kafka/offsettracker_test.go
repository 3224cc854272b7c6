package kafka

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the tracker as one would write it without caring for speed.
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
		tr := newTracker(m.start, -1)
		var open []uint64
		next, epoch := m.start+r.Int64N(3), int32(0)
		gap, window := 1+r.Int64N(6), 1+r.IntN(300)
		for range 300 {
			switch {
			case tr.size() < window && r.IntN(2) == 0:
				if r.IntN(50) == 0 {
					epoch++
				}
				seq := tr.add(next, epoch, nil)
				if int(seq) != len(m.offsets) {
					t.Fatalf("seed %d: sequence %d, want %d", seed, seq, len(m.offsets))
				}
				m.offsets, m.epochs, m.done = append(m.offsets, next), append(m.epochs, epoch), append(m.done, false)
				open = append(open, seq)
				next += 1 + r.Int64N(gap)
			case len(open) > 0 && r.IntN(10) == 0:
				tr.gaveBack(open[r.IntN(len(open))], 2+r.IntN(3))
			case len(open) > 0:
				i := r.IntN(len(open))
				tr.ack(open[i])
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
			tr.ack(seq)
			m.done[seq] = true
		}
		m.compare(t, seed, &tr, 4000)
		if n := len(m.offsets); n > 0 && tr.base != m.offsets[n-1]+1 || tr.size() != 0 {
			t.Fatalf("seed %d: at the end base %d, %d open", seed, tr.base, tr.size())
		}
	}
}

func (m *model) compare(t *testing.T, seed uint64, tr *tracker, budget int) {
	t.Helper()
	topic := logMark{topic: 7}
	offset, epoch, first := m.watermark()
	s := tr.snapshot(budget, topic)
	if s.offset != offset || s.epoch != epoch {
		t.Fatalf("seed %d: commits %d epoch %d, want %d epoch %d", seed, s.offset, s.epoch, offset, epoch)
	}
	if len(s.saved) > budget {
		t.Fatalf("seed %d: %d characters saved, the budget is %d", seed, len(s.saved), budget)
	}
	if s.saved == "" {
		return
	}
	saved, ok := decodeRuns(s.saved, topic, s.offset)
	if !ok {
		t.Fatalf("seed %d: cannot read what was saved", seed)
	}
	for i := first; i < len(m.offsets); i++ {
		if n := saved.attempts[m.offsets[i]]; n > 0 && n != tr.attempts[uint64(i)] {
			t.Fatalf("seed %d: offset %d is saved at attempt %d, want %d", seed, m.offsets[i], n, tr.attempts[uint64(i)])
		}
		if saved.has(m.offsets[i], m.epochs[i]) && !m.done[i] {
			t.Fatalf("seed %d: offset %d is not done and would be skipped", seed, m.offsets[i])
		}
	}
}

// With room enough everything that is done is saved.
func TestAllThatIsDoneIsSaved(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		tr := newTracker(100, -1)
		var done []int64
		offset := int64(100)
		for i := range 500 {
			seq := tr.add(offset, 3, nil)
			if i > 0 && r.IntN(4) > 0 {
				tr.ack(seq)
				done = append(done, offset)
			}
			offset += 1 + r.Int64N(3)
		}
		s := tr.snapshot(4096, logMark{topic: 1})
		saved, ok := decodeRuns(s.saved, logMark{topic: 1}, s.offset)
		if !ok {
			t.Fatalf("seed %d: cannot read %q", seed, s.saved)
		}
		for _, o := range done {
			if !saved.has(o, 3) {
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
		tr := newTracker(0, -1)
		seq := map[int64]uint64{}
		for _, o := range c.offsets {
			seq[o] = tr.add(o, 0, nil)
		}
		for _, o := range c.acks {
			tr.ack(seq[o])
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
		tr := newTracker(1<<40, -1)
		for i := range c.window {
			if seq := tr.add(1<<40+int64(i), 5, nil); !c.open(r, i) {
				tr.ack(seq)
			}
		}
		s := tr.snapshot(4000, logMark{topic: 9})
		saved, ok := decodeRuns(s.saved, logMark{topic: 9}, s.offset)
		if !ok || len(s.saved) > c.limit {
			t.Errorf("%s: %d characters (readable: %t), at most %d", c.name, len(s.saved), ok, c.limit)
		}
		covered := 0
		for i := range c.window {
			if saved.has(1<<40+int64(i), 5) {
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
	tr := newTracker(10, -1)
	for i := range int64(20) {
		if seq := tr.add(10+i, 4, nil); i%3 != 0 {
			tr.ack(seq)
		}
	}
	s := tr.snapshot(4000, logMark{topic: 1})
	good, ok := decodeRuns(s.saved, logMark{topic: 1}, s.offset)
	if !ok || !good.has(11, 4) {
		t.Fatal("the text itself must be good")
	}
	if again, _ := decodeRuns(s.saved, logMark{topic: 1}, s.offset); again.has(11, 5) {
		t.Error("a record of a later epoch is another record")
	}
	for name, c := range map[string]struct {
		text  string
		topic uint32
		base  int64
	}{
		"another topic":       {s.saved, 2, s.offset},
		"a translated offset": {s.saved, 1, s.offset + 1},
		"no offset":           {s.saved, 1, -1},
		"cut":                 {s.saved[:len(s.saved)-1], 1, s.offset},
		"longer":              {s.saved + "A", 1, s.offset},
		"a member id":         {"kgo-1234", 1, s.offset},
		"another version":     {"ls1." + s.saved[4:], 1, s.offset},
		"Parallel Consumer":   {"bAAQAA==", 1, s.offset},
		"empty":               {"", 1, s.offset},
		"only the prefix":     {savedPrefix, 1, s.offset},
	} {
		if got, ok := decodeRuns(c.text, logMark{topic: c.topic}, c.base); ok || len(got.runs) > 0 {
			t.Errorf("%s: read as %+v", name, got.runs)
		}
	}
}

// F-C05
func FuzzSavedState(f *testing.F) {
	f.Add("ls2.AAAA", int64(0))
	tr := newTracker(10, -1)
	for i := range int64(100) {
		if seq := tr.add(10+i, 4, nil); i%3 != 0 {
			tr.ack(seq)
		}
	}
	f.Add(tr.snapshot(4000, logMark{topic: 1}).saved, int64(10))
	f.Fuzz(func(t *testing.T, text string, base int64) {
		s, ok := decodeRuns(text, logMark{topic: 1}, base)
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
	tr := newTracker(0, -1)
	for i := range b.N {
		tr.ack(tr.add(int64(i), 0, nil))
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	tr := newTracker(0, -1)
	for i := range 4096 {
		if seq := tr.add(int64(i), 0, nil); i > 0 && r.IntN(100) > 0 {
			tr.ack(seq)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		tr.snapshot(4000, logMark{topic: 1})
	}
}

// What an earlier owner had done beyond what this one has read is in its commits
// too: two stops in a row forget nothing. After a later leader epoch it is not, as
// the offsets may have been given out again.
func TestInheritedStateIsSavedAgain(t *testing.T) {
	t.Parallel()
	first := newTracker(100, 1)
	head := first.add(100, 3, nil)
	for o := int64(101); o < 1000; o++ {
		first.ack(first.add(o, 3, nil))
	}
	first.gaveBack(first.add(1000, 3, nil), 4)
	_ = head
	for name, c := range map[string]struct {
		epoch int32
		want  bool
	}{"the same epoch": {3, true}, "a later one": {4, false}} {
		s := first.snapshot(4000, logMark{topic: 7})
		second := newTracker(s.offset, s.epoch)
		second.saved, _ = decodeRuns(s.saved, logMark{topic: 7}, s.offset)
		second.ack(second.add(100, c.epoch, nil)) // the head is done, and ten behind it are read
		for o := int64(101); o < 111; o++ {
			if !second.saved.has(o, 3) {
				t.Fatalf("%s: %d is not known", name, o)
			}
			second.ack(second.add(o, c.epoch, nil))
		}
		s = second.snapshot(4000, logMark{topic: 7})
		third, ok := decodeRuns(s.saved, logMark{topic: 7}, s.offset)
		if s.offset != 111 || ok != c.want {
			t.Fatalf("%s: commits %d, saved %v", name, s.offset, ok)
		}
		if !c.want {
			continue
		}
		for o := int64(111); o < 1000; o++ {
			if !third.has(o, 3) {
				t.Fatalf("%s: %d is forgotten", name, o)
			}
		}
		if third.has(1000, 3) || third.attempt(1000, 3) != 4 {
			t.Errorf("%s: the one that waits is done %v, at attempt %d", name, third.has(1000, 3), third.attempt(1000, 3))
		}
	}
}
