package offsets

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// Snapshot is what a commit carries: one consistent view of a tracker.
type Snapshot struct {
	Offset  int64  // the position to commit
	Epoch   int32  // leader epoch of the record before it, -1 if unknown
	Version uint64 // the tracker's, so that a confirmed commit says how much is committed
	Saved   string // the metadata: what is done above Offset
	// Forgotten counts the records that are done above Offset and not described by Saved:
	// the next owner repeats them.
	Forgotten int
}

// Snapshot returns what to commit now. The text about the records done above the
// watermark takes at most budget characters; mark says which log it belongs to.
func (t *Tracker) Snapshot(budget int, mark Mark) Snapshot {
	s := Snapshot{Offset: t.base, Epoch: t.epoch, Version: t.version}
	ahead, waiting := t.inherited()
	if t.island == 0 && len(t.attempts) == 0 && len(ahead) == 0 && len(waiting) == 0 && mark.place == 0 {
		return s
	}
	runs := append(t.runs(), ahead...)
	h := header{mark: mark, base: t.base, epoch: t.newest, undone: t.undone(ahead)}
	if len(ahead) > 0 || len(waiting) > 0 {
		h.epoch = t.saved.epoch // not below that of a record seen here: see inherited
	}
	var covered int
	s.Saved, covered = encode(runs, append(t.retried(), waiting...), h, budget)
	s.Forgotten = count(runs) - covered
	return s
}

// inherited is what an earlier owner had saved about records that this assignment
// has not come to yet: it must be in our commits too, or a stop before we have read
// that far would forget it. Once records of a later leader epoch were seen it is
// left out: their offsets may have been given out again, and repeating is better
// than skipping.
func (t *Tracker) inherited() (runs []span, attempts []retried) {
	if t.newest > t.saved.epoch {
		return nil, nil
	}
	for _, r := range t.saved.runs {
		if from := max(r.from, t.read); from < r.to {
			runs = append(runs, span{from: from, to: r.to, n: int(r.to - from)})
		}
	}
	for _, offset := range slices.Sorted(maps.Keys(t.saved.attempts)) {
		if offset >= t.read {
			attempts = append(attempts, retried{offset, t.saved.attempts[offset]})
		}
	}
	return runs, attempts
}

// retried lists the attempts of records that were given back.
func (t *Tracker) retried() (out []retried) {
	for _, seq := range slices.Sorted(maps.Keys(t.attempts)) {
		out = append(out, retried{t.offsets[t.slot(seq)], t.attempts[seq]})
	}
	return out
}

// undone yields the offsets that are handed out and not done and, after them, those that
// an earlier owner had not done either: the gaps between the runs of ahead.
func (t *Tracker) undone(ahead []span) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for seq := t.head; seq < t.tail; seq++ {
			if s := t.slot(seq); t.done[s/64]&(1<<(s%64)) == 0 && !yield(t.offsets[s]) {
				return
			}
		}
		at := t.read
		for _, r := range ahead {
			for ; at < r.from; at++ {
				if !yield(at) {
					return
				}
			}
			at = r.to
		}
	}
}

// runs lists the records done above the watermark, as ranges of offsets that reach from one
// record that is not done to the next: between them there is no other.
func (t *Tracker) runs() []span {
	var out []span
	left := t.island
	for seq := t.head; left > 0; {
		s := t.slot(seq)
		word := t.done[s/64] >> (s % 64)
		if skip := min(bits.TrailingZeros64(word), 64-s%64); skip > 0 {
			seq += uint64(skip) //nolint:gosec // at most 64
			continue
		}
		// The head is not done: its bit ends a run that would reach around the ring, and there
		// is a record before each run.
		n := bits.TrailingZeros64(^word)
		from, to := t.offsets[t.slot(seq-1)]+1, t.offsets[s+n-1]+1
		next := seq + uint64(n) //nolint:gosec // at most 64
		left -= next - seq
		// A run that goes on in the next word of the bitmap is one run.
		if k := len(out) - 1; k >= 0 && out[k].next == seq {
			out[k].to, out[k].next, out[k].n = to, next, out[k].n+n
		} else {
			out = append(out, span{from: from, to: to, n: n, next: next})
		}
		seq = next
	}
	for i := range out {
		if next := out[i].next; next < t.tail {
			out[i].to = t.offsets[t.slot(next)]
		}
	}
	return out
}

// span is a range of offsets [from, to) of which every record is done.
type span struct {
	from, to int64  // offsets that are done, to excluded
	n        int    // records in it: a range may contain offsets without a record
	next     uint64 // sequence number after its last record, to join neighbouring runs
}
