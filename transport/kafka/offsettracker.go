package kafka

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/longshore-go/longshore"
)

// tracker knows which records of one assigned partition are done, in whatever
// order that comes, and how far the partition can be committed.
//
// Records get dense sequence numbers as they are handed out; their offsets, which
// have gaps (compaction, transactions), are looked up in a ring. So a gap costs
// nothing and holds nothing up. It is not safe for concurrent use: its partition's
// lock guards it.
type tracker struct {
	head, tail uint64 // sequence numbers [head, tail) are handed out and not yet below the watermark
	offsets    []int64
	done       []uint64              // one bit for each slot
	held       []*longshore.Delivery // what is out; nil when done, or when nobody holds it

	base   int64   // what can be committed: the last contiguous done offset + 1
	epoch  int32   // leader epoch of the record before base, -1 if not known
	epochs []epoch // of the records in the ring, in runs
	newest int32   // highest epoch of any record seen here
	read   int64   // above the last record seen here

	island uint64 // how many in [head, tail) are done
	ver    uint64 // rises with each change that a commit should carry

	attempts map[uint64]int // of those that were given back and counted

	saved savedRuns // done before this assignment, read from the group
}

// epoch is a run of records with one leader epoch.
type epoch struct {
	from uint64
	n    int32
}

const (
	minRing = 64
	maxKept = 4096 // of an empty ring
)

// newTracker starts at the position of the group, or where the partition is read
// from if the group has none.
func newTracker(position int64, leaderEpoch int32) tracker {
	return tracker{base: position, epoch: leaderEpoch, newest: -1, read: position}
}

// held records that are out or done above the watermark.
func (t *tracker) size() int { return int(t.tail - t.head) } //nolint:gosec // bounded by the window

func (t *tracker) slot(seq uint64) int { return int(seq & uint64(len(t.offsets)-1)) } //nolint:gosec // below len

// add registers a record and returns its sequence number. Offsets must ascend.
func (t *tracker) add(offset int64, leaderEpoch int32, d *longshore.Delivery) uint64 {
	if t.size() == len(t.offsets) {
		t.grow()
	}
	seq := t.tail
	t.tail++
	s := t.slot(seq)
	t.offsets[s], t.held[s] = offset, d
	if n := len(t.epochs); n == 0 || t.epochs[n-1].n != leaderEpoch {
		t.epochs = append(t.epochs, epoch{seq, leaderEpoch})
	}
	t.newest = max(t.newest, leaderEpoch)
	t.read = offset + 1
	return seq
}

// grow doubles the ring.
func (t *tracker) grow() {
	old := *t
	n := max(minRing, 2*len(t.offsets))
	t.offsets, t.held, t.done = make([]int64, n), make([]*longshore.Delivery, n), make([]uint64, n/64)
	for seq := old.head; seq < old.tail; seq++ {
		from, to := old.slot(seq), t.slot(seq)
		t.offsets[to], t.held[to] = old.offsets[from], old.held[from]
		if old.done[from/64]&(1<<(from%64)) != 0 {
			t.done[to/64] |= 1 << (to % 64)
		}
	}
}

// ack marks a record done. A record is acked at most once: its delivery sees to
// that.
func (t *tracker) ack(seq uint64) {
	s := t.slot(seq)
	t.done[s/64] |= 1 << (s % 64)
	t.held[s] = nil
	if len(t.attempts) > 0 {
		delete(t.attempts, seq)
	}
	t.island++
	t.ver++
	if seq == t.head {
		t.advance()
	}
}

// advance moves the watermark over all that is contiguously done, up to 64 records
// a step.
func (t *tracker) advance() {
	for t.head < t.tail {
		s := t.slot(t.head)
		n := bits.TrailingZeros64(^(t.done[s/64] >> (s % 64)))
		n = min(n, 64-s%64, t.size())
		if n == 0 {
			break
		}
		mask := ^uint64(0) >> (64 - n) << (s % 64)
		t.done[s/64] &^= mask
		t.head += uint64(n)
		t.island -= uint64(n)
		t.base = t.offsets[s+n-1] + 1
	}
	t.dropEpochs()
	if t.size() == 0 && len(t.offsets) > maxKept {
		t.offsets, t.held, t.done = nil, nil, nil // it was large because something was stuck
	}
}

// dropEpochs keeps the epoch of the last record below the watermark: a commit
// with the epoch of any other record looks like data loss later.
func (t *tracker) dropEpochs() {
	i := 0
	for i+1 < len(t.epochs) && t.epochs[i+1].from < t.head {
		i++
	}
	if len(t.epochs) > 0 && t.epochs[i].from < t.head {
		t.epoch = t.epochs[i].n
	}
	if i > 0 {
		t.epochs = t.epochs[:copy(t.epochs, t.epochs[i:])]
	}
}

// state is what a commit carries: one consistent view.
type state struct {
	offset int64
	epoch  int32
	ver    uint64
	saved  string
	// forgotten is how many records are done above the offset and not in saved: the next
	// owner repeats them.
	forgotten int
}

// snapshot returns what to commit now. The text about what is done above the
// watermark takes at most budget characters; mark says which log it belongs to.
func (t *tracker) snapshot(budget int, mark logMark) state {
	s := state{offset: t.base, epoch: t.epoch, ver: t.ver}
	ahead, tried := t.inherited()
	if t.island == 0 && len(t.attempts) == 0 && len(ahead) == 0 && len(tried) == 0 && mark.place == 0 {
		return s
	}
	runs := append(t.runs(), ahead...)
	if s.forgotten = count(runs); budget > 0 {
		head := savedHead{mark: mark, base: t.base, epoch: t.newest, undone: t.undone(ahead)}
		if len(ahead) > 0 || len(tried) > 0 {
			head.epoch = t.saved.epoch
		}
		var covered int
		s.saved, covered = encodeRuns(runs, append(t.tried(), tried...), head, budget)
		s.forgotten -= covered
	}
	return s
}

// inherited is what an earlier owner had saved about records that this assignment
// has not come to yet: it must be in our commits too, or a stop before we have read
// that far would forget it. Once records of a later leader epoch were seen it is
// left out: their offsets may have been given out again, and repeating is better
// than skipping.
func (t *tracker) inherited() (runs []span, attempts []tried) {
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
			attempts = append(attempts, tried{offset, t.saved.attempts[offset]})
		}
	}
	return runs, attempts
}

// gaveBack notes the attempt that a record is at, so that it survives this
// assignment.
func (t *tracker) gaveBack(seq uint64, attempt int) {
	if attempt <= 1 {
		return
	}
	if t.attempts == nil {
		t.attempts = map[uint64]int{}
	}
	t.attempts[seq] = attempt
	t.ver++
}

func (t *tracker) tried() []tried {
	if len(t.attempts) == 0 {
		return nil
	}
	out := make([]tried, 0, len(t.attempts))
	for _, seq := range slices.Sorted(maps.Keys(t.attempts)) {
		out = append(out, tried{t.offsets[t.slot(seq)], t.attempts[seq]})
	}
	return out
}

// unfinished is how many are handed out and not done.
func (t *tracker) unfinished() int { return t.size() - int(t.island) } //nolint:gosec // bounded by the window

// undone are the offsets of what is handed out and not done, and behind them those that
// an earlier owner had not done either: between the runs of ahead.
func (t *tracker) undone(ahead []span) iter.Seq[int64] {
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

// runs lists what is done above the watermark, as ranges of offsets that reach from one
// record that is not done to the next: between them there is no other.
func (t *tracker) runs() []span {
	var out []span
	left := t.island
	for seq := t.head; left > 0 && seq < t.tail; {
		s := t.slot(seq)
		word := t.done[s/64] >> (s % 64)
		room := min(64-s%64, int(t.tail-seq)) //nolint:gosec // at most 64
		if word == 0 {
			seq += uint64(room) //nolint:gosec // at most 64
			continue
		}
		if skip := bits.TrailingZeros64(word); skip > 0 {
			seq += uint64(skip) //nolint:gosec // at most 64
			continue
		}
		n := min(bits.TrailingZeros64(^word), room)
		from, to := t.offsets[t.slot(seq-1)]+1, t.offsets[s+n-1]+1 // the head is not done, so there is one before
		left -= uint64(n)                                          //nolint:gosec // at most 64
		// A run that goes on in the next word of the bitmap is one run.
		if k := len(out) - 1; k >= 0 && out[k].next == seq {
			out[k].to, out[k].next, out[k].n = to, seq+uint64(n), out[k].n+n //nolint:gosec // at most 64
		} else {
			out = append(out, span{from: from, to: to, n: n, next: seq + uint64(n)}) //nolint:gosec // at most 64
		}
		seq += uint64(n) //nolint:gosec // at most 64
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
	from, to int64
	n        int    // records in it
	next     uint64 // sequence number behind it
}

// open returns what is out: handed out and not settled.
func (t *tracker) open() []*longshore.Delivery {
	var ds []*longshore.Delivery
	for seq := t.head; seq < t.tail; seq++ {
		if d := t.held[t.slot(seq)]; d != nil {
			ds = append(ds, d)
		}
	}
	return ds
}
