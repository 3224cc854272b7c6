package offsets

import "iter"

// SnapshotBelow is the snapshot of a state between the last commit and now: records below cut
// count as done, and of those from cut on only the ones in before, the state of the last commit. So
// what is done can be committed in several steps, and no step takes back an earlier one.
//
// ok is false where the text would not fit, or where before describes records that another leader
// has replaced since.
func (t *Tracker) SnapshotBelow(cut int64, before Saved, budget int, mark Mark) (s Snapshot, ok bool) {
	s = Snapshot{Offset: min(t.base, cut), Epoch: t.epoch}
	if s.Offset < t.base {
		s.Epoch = -1 // that of the record before cut is not kept
	}
	ahead, waiting := t.inherited()
	var runs []span
	for _, r := range append(t.runs(), ahead...) {
		runs = clip(runs, r, s.Offset, cut)
	}
	kept := 0
	for _, r := range before.runs {
		if r.to > cut {
			kept++
			runs = clip(runs, r, max(cut, s.Offset), r.to)
		}
	}
	if kept > 0 && t.newest > before.epoch {
		return s, false
	}
	h := header{mark: mark, base: s.Offset, epoch: t.newest, undone: outside(runs, s.Offset)}
	if kept > 0 {
		h.epoch = before.epoch
	}
	if len(ahead) > 0 || len(waiting) > 0 {
		h.epoch = max(h.epoch, t.saved.epoch)
	}
	covered := 0
	s.Saved, covered = encode(runs, append(t.retried(), waiting...), h, budget)
	return s, covered == count(runs)
}

// clip appends what a run has in [from, to), joined to the last run where it touches that.
func clip(runs []span, r span, from, to int64) []span {
	from, to = max(r.from, from), min(r.to, to)
	if from >= to {
		return runs
	}
	if k := len(runs) - 1; k >= 0 && runs[k].to >= from {
		from, runs = runs[k].from, runs[:k]
	}
	return append(runs, span{from: from, to: to, n: int(to - from)})
}

// outside yields the offsets from base on that are in none of the runs, up to the end of the last.
func outside(runs []span, base int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		at := base
		for _, r := range runs {
			for ; at < r.from; at++ {
				if !yield(at) {
					return
				}
			}
			at = r.to
		}
	}
}
