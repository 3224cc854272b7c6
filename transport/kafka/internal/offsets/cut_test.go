package offsets

import (
	"math/rand/v2"
	"testing"
)

// F-C03: a commit in pieces goes forward only. What the broker was told is done stays so with each
// piece, what belongs to the piece is said to be done, and what belongs to a later one is not,
// with gaps between the offsets and with what an earlier owner had done.
func TestCommitInPieces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 28))
		tr := New(0, -1)
		var before Saved
		var records []int64 // offsets, with gaps
		for o := int64(0); o < 200; o += 1 + r.Int64N(3) {
			records = append(records, o)
		}
		done := map[int64]bool{} // of an earlier owner, and then all
		if seed%3 == 0 {         // it inherits
			first := New(0, -1)
			for _, o := range records[:30] {
				if seq := first.Add(o, 1, nil); o > 0 && r.IntN(2) == 0 {
					first.Ack(seq)
					done[o] = true
				}
			}
			s := first.Snapshot(DefaultBudget, testMark)
			before, _ = Decode(s.Saved, testMark, s.Offset)
			inherited, _ := Decode(s.Saved, testMark, s.Offset)
			tr.Inherit(inherited)
		}
		told := func(s Saved, at, offset int64) bool { return offset < at || s.Has(offset, 1) }
		var results []int64 // records whose results no commit has carried, ascending
		for _, o := range records {
			seq := tr.Add(o, 1, nil)
			switch {
			case tr.WasDone(o, 1):
				tr.Ack(seq)
			case r.IntN(20) > 0:
				tr.Ack(seq)
				if done[o] = true; r.IntN(3) > 0 {
					results = append(results, o)
				}
			}
		}
		whole := tr.Snapshot(DefaultBudget, testMark)
		at := int64(0)
		for len(results) > 1 {
			n := 1 + r.IntN(len(results)-1)
			cut := results[n]
			s, ok := tr.SnapshotBelow(cut, before, DefaultBudget, testMark)
			if !ok {
				t.Fatalf("seed %d: no piece below %d", seed, cut)
			}
			if s.Offset < at || s.Offset > whole.Offset {
				t.Fatalf("seed %d: position %d after %d, and %d at the end", seed, s.Offset, at, whole.Offset)
			}
			for _, o := range records { // each question in ascending order, of fresh texts
				was, now, all := before, decoded(t, s), decoded(t, whole)
				switch is := told(now, s.Offset, o); {
				case told(was, at, o) && !is:
					t.Fatalf("seed %d: %d was said to be done and is no more", seed, o)
				case done[o] && o < cut && !is && told(all, whole.Offset, o):
					t.Fatalf("seed %d: %d is done, before %d, and the piece does not say so", seed, o, cut)
				case o >= cut && is && !told(was, at, o):
					t.Fatalf("seed %d: %d comes with a later piece than %d", seed, o, cut)
				}
			}
			at, before, results = s.Offset, decoded(t, s), results[n:]
		}
	}
}

func decoded(t *testing.T, s Snapshot) Saved {
	t.Helper()
	saved, ok := Decode(s.Saved, testMark, s.Offset)
	if !ok {
		t.Fatalf("cannot read %q", s.Saved)
	}
	return saved
}

// Where the text of a piece would not fit, or another leader has replaced what the broker was
// told is done, there is no piece.
func TestCommitInPiecesIsRefused(t *testing.T) {
	t.Parallel()
	tr := New(0, -1)
	tr.Add(0, 5, nil)
	for o := int64(1); o < 200; o++ {
		if seq := tr.Add(o, 5, nil); o%2 == 0 {
			tr.Ack(seq)
		}
	}
	if _, ok := tr.SnapshotBelow(150, Saved{}, 40, testMark); ok {
		t.Error("75 runs in 40 characters")
	}
	if _, ok := tr.SnapshotBelow(150, Saved{runs: []span{{from: 170, to: 180}}, epoch: 4}, DefaultBudget, testMark); ok {
		t.Error("records of an earlier leader epoch are passed on as done")
	}
}
