package offsets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// F-N04: where canDescribe says that a state can be described, all that is done is, whichever
// of the open records are done meanwhile and wherever the offsets have gaps.
func TestWhatCanBeSavedIsSaved(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		most := 3000
		if seed%30 == 0 {
			most = maxWindow
		}
		budget := []int{80, 150, 400, DefaultBudget}[r.IntN(4)]
		gap := []int64{1, 1, 1, 3, 40, 1 << 20}[r.IntN(6)]
		share := 1 + r.IntN(100)
		base := []int64{0, 1 << 45}[r.IntN(2)]
		tr := New(base, -1)
		var open []uint64
		for offset := base; canDescribe(tr.Unfinished()+1, offset+1-tr.base, roomFor(budget)) && tr.Len() < most; offset += 1 + r.Int64N(gap) {
			if seq := tr.Add(offset, 1, nil); r.IntN(100) >= share && seq > 0 {
				tr.Ack(seq)
			} else {
				open = append(open, seq)
			}
		}
		for range r.IntN(len(open) + 1) {
			i := r.IntN(len(open))
			tr.Ack(open[i])
			open = append(open[:i], open[i+1:]...)
		}
		checkSaved(t, seed, &tr, budget)
	}
}

// checkSaved: all that is done is saved, and nothing else.
func checkSaved(t *testing.T, seed uint64, tr *Tracker, budget int) {
	t.Helper()
	mark := Mark{topic: 1, place: 2}
	s := tr.Snapshot(budget, mark)
	if s.Forgotten != 0 || len(s.Saved) > budget {
		t.Fatalf("seed %d: %d done records are not in %d of %d characters", seed, s.Forgotten, len(s.Saved), budget)
	}
	saved, ok := Decode(s.Saved, mark, s.Offset)
	if !ok {
		t.Fatalf("seed %d: cannot read %q", seed, s.Saved)
	}
	for seq := tr.head; seq < tr.tail; seq++ {
		at := tr.slot(seq)
		done := tr.done[at/64]&(1<<(at%64)) != 0
		if saved.Has(tr.offsets[at], 1) != done {
			t.Fatalf("seed %d: offset %d: done %t, saved %t", seed, tr.offsets[at], done, !done)
		}
	}
}

// F-N04: how many records of one partition 4,000 characters can describe, by how many of
// them are not done. Any pattern of 23,000 fits.
func TestBoundOfWhatCanBeSaved(t *testing.T) {
	t.Parallel()
	room := roomFor(DefaultBudget)
	for _, c := range []struct {
		open, span, most, want int
	}{
		{0, 0, 1, 1},
		{0, 0, maxWindow, 23744},          // any pattern: a bit for each
		{1, 1, 100_000, 23743},            // a head that is not done, and as many in work
		{2000, 23_000, maxWindow, 3653},   //
		{655, 65_536, maxWindow, 3210},    // 1 % of the largest window waits for a retry
		{3520, 64_000, 2000, 399},         // 5.5 %, and 128 in work
		{5000, 65_536, 1, 0},              // 7.6 % are too many
		{100, 1_000_000, maxWindow, 2090}, // a compacted topic
	} {
		got := handOut(c.open, int64(c.span), room, c.most)
		if got != c.want {
			t.Errorf("with %d open in %d offsets %d of %d can be handed out, want %d", c.open, c.span, got, c.most, c.want)
		}
		if got < c.most && canDescribe(c.open+got+1, int64(c.span+got+1), room) {
			t.Errorf("with %d open in %d offsets one more than %d fits", c.open, c.span, got)
		}
	}
}

// F-N04: what a version before the list of open records wrote is still read.
func TestSavedByTheVersionBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		n, every int64
		attempt  int
	}{
		{"ls2.HcaqEwEHAAAACQAAAGQIAQADATEBMQExATEBMQExATEBMQ", 400, 50, 3},
		{"ls2.oRledwIHAAAACQAAAGQIALZt27Zt27Zt27Zt27Zt27Zt27Zt27Zt27Y", 200, 3, 1},
	} {
		s, ok := Decode(c.text, Mark{topic: 7, place: 9}, 100)
		if !ok || s.Attempt(100, 4) != c.attempt {
			t.Fatalf("%s: read %t, attempt %d", c.text, ok, s.Attempt(100, 4))
		}
		for i := range c.n {
			if s.Has(100+i, 4) != (i%c.every != 0) {
				t.Fatalf("%s: offset %d", c.text, 100+i)
			}
		}
	}
}

// Text that nobody wrote like this is refused whole.
func TestBrokenListsAreRefused(t *testing.T) {
	t.Parallel()
	good, _ := undoneBody([]span{{from: 11, to: 20, n: 9}, {from: 22, to: 40, n: 18}}, slices.Values([]int64{10, 20, 21}), 10, 100)
	if runs, ok := readUndone(good, 10); !ok || fmt.Sprint(runs) != "[{11 20 0 0} {22 40 0 0}]" {
		t.Fatalf("read %v %t", runs, ok)
	}
	for name, b := range map[string][]byte{
		"empty": {}, "no shift": {30}, "a shift beyond all": {30, 63, 0}, "no count": {30, 1},
		"more than it holds": {30, 0, 200, 0}, "beyond its end": {2, 0, 1, 0b111}, "cut": good[:len(good)-1],
	} {
		if runs, ok := readUndone(b, 10); ok {
			t.Errorf("%s: read as %v", name, runs)
		}
	}
}

func BenchmarkBound(b *testing.B) {
	room := roomFor(DefaultBudget)
	b.ReportAllocs()
	for b.Loop() {
		handOut(3520, 64_000, room, 2000)
	}
}

// maxWindow is the largest window of a partition, as its consumer has it.
const maxWindow = 1 << 16
