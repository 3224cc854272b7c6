package offsets

import (
	"math/bits"

	"github.com/longshore-go/longshore"
)

// Tracker knows which records of one assigned partition are done, in whatever order
// they are acknowledged, and up to where the partition can be committed.
//
// Records get dense sequence numbers as they are handed out. A ring keeps their offsets,
// which have gaps (compaction, transaction markers), so a gap costs nothing and holds
// nothing up.
type Tracker struct {
	// head and tail bound the ring: the sequence numbers [head, tail) are handed out and
	// not yet below the watermark.
	head, tail uint64
	offsets    []int64               // the offset of each sequence number; its length is a power of two
	done       []uint64              // one bit for each slot: acknowledged out of order
	held       []*longshore.Delivery // the delivery that can be settled; nil once it is settled

	base   int64   // the offset to commit: the last contiguous done offset + 1; -1 before the log is known
	epoch  int32   // leader epoch of the record before base, which a commit names; -1 if unknown
	epochs []epoch // leader epochs of the records in the ring, in runs: nearly always one
	newest int32   // highest leader epoch seen: state saved under an older one is no longer passed on
	read   int64   // offset after the last record added: what was inherited beyond it still counts

	island  uint64 // how many in [head, tail) are done: the work that only the saved text protects
	version uint64 // rises with each change that a commit should carry, so unchanged partitions are skipped

	attempts map[uint64]int // attempts of records that were given back, so that MaxAttempts survives an assignment
	saved    Saved          // what an earlier owner had done above the committed offset
}

// epoch is a run of records with one leader epoch.
type epoch struct {
	from uint64 // its first sequence number
	n    int32  // of the leader that wrote the records from here on
}

const (
	minRing = 64
	// maxIdleRing is the largest ring that is kept when it is empty: a larger one grew
	// because one record was stuck.
	maxIdleRing = 4096
)

// New returns a tracker at the group's committed position, or where reading begins if the
// group has none. leaderEpoch is -1 if unknown.
func New(position int64, leaderEpoch int32) Tracker {
	return Tracker{base: position, epoch: leaderEpoch, newest: -1, read: position}
}

// Base is the offset to commit; negative while the log's position is unknown.
func (t *Tracker) Base() int64 { return t.base }

// Epoch is the leader epoch of the record before Base, -1 if unknown.
func (t *Tracker) Epoch() int32 { return t.epoch }

// Read is the offset after the last record that was added.
func (t *Tracker) Read() int64 { return t.read }

// Head is the sequence number of the oldest record that is not done.
func (t *Tracker) Head() uint64 { return t.head }

// Tail is the sequence number that the next record gets.
func (t *Tracker) Tail() uint64 { return t.tail }

// Len counts the records that are handed out or done above the watermark.
func (t *Tracker) Len() int { return int(t.tail - t.head) } //nolint:gosec // bounded by the window

// Done counts the records that are done above the watermark.
func (t *Tracker) Done() int { return int(t.island) } //nolint:gosec // bounded by the window

// Unfinished counts the records that are handed out and not done.
func (t *Tracker) Unfinished() int { return t.Len() - t.Done() }

// Version changes whenever a commit has something new to carry.
func (t *Tracker) Version() uint64 { return t.version }

// Touch makes the next commit carry the position although no record was done.
func (t *Tracker) Touch() { t.version++ }

func (t *Tracker) slot(seq uint64) int { return int(seq & uint64(len(t.offsets)-1)) } //nolint:gosec // below len

// Has reports whether seq is in the ring.
func (t *Tracker) Has(seq uint64) bool { return seq >= t.head && seq < t.tail }

// Offset is that of a record in the ring.
func (t *Tracker) Offset(seq uint64) int64 { return t.offsets[t.slot(seq)] }

// Held returns the delivery of a record in the ring that can be settled, or nil.
func (t *Tracker) Held(seq uint64) *longshore.Delivery { return t.held[t.slot(seq)] }

// Hold replaces the delivery of a record in the ring: nil when it was given back, another
// when it is handed out again.
func (t *Tracker) Hold(seq uint64, d *longshore.Delivery) { t.held[t.slot(seq)] = d }

// Add registers a record and returns its sequence number. Offsets must ascend.
func (t *Tracker) Add(offset int64, leaderEpoch int32, d *longshore.Delivery) uint64 {
	if t.Len() == len(t.offsets) {
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
func (t *Tracker) grow() {
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

// Ack marks a record done. A record is acknowledged at most once: its delivery ensures
// that.
func (t *Tracker) Ack(seq uint64) {
	s := t.slot(seq)
	t.done[s/64] |= 1 << (s % 64)
	t.held[s] = nil
	delete(t.attempts, seq)
	t.island++
	t.version++
	if seq == t.head {
		t.advance()
	}
}

// advance moves the watermark over everything that is contiguously done, up to 64
// records a step.
func (t *Tracker) advance() {
	for t.head < t.tail {
		s := t.slot(t.head)
		n := bits.TrailingZeros64(^(t.done[s/64] >> (s % 64))) // none beyond the word, or the tail
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
	if t.Len() == 0 && len(t.offsets) > maxIdleRing {
		t.offsets, t.held, t.done = nil, nil, nil
	}
}

// dropEpochs keeps the epoch of the last record below the watermark: a commit with the
// epoch of any other record would later look like data loss.
func (t *Tracker) dropEpochs() {
	i := 0
	for i+1 < len(t.epochs) && t.epochs[i+1].from < t.head {
		i++
	}
	if t.epochs[i].from < t.head {
		t.epoch = t.epochs[i].n
	}
	t.epochs = t.epochs[:copy(t.epochs, t.epochs[i:])]
}

// Retried notes the attempt that a record is at, so that it survives this assignment.
func (t *Tracker) Retried(seq uint64, attempt int) {
	if attempt <= 1 {
		return
	}
	if t.attempts == nil {
		t.attempts = map[uint64]int{}
	}
	t.attempts[seq] = attempt
	t.version++
}

// Open returns the deliveries that are handed out and not settled.
func (t *Tracker) Open() []*longshore.Delivery {
	var ds []*longshore.Delivery
	for seq := t.head; seq < t.tail; seq++ {
		if d := t.held[t.slot(seq)]; d != nil {
			ds = append(ds, d)
		}
	}
	return ds
}

// Inherit takes over what an earlier owner had done above the committed offset.
func (t *Tracker) Inherit(s Saved) { t.saved = s }

// WasDone reports whether an earlier owner had done a record. Records are asked for in
// ascending order.
func (t *Tracker) WasDone(offset int64, leaderEpoch int32) bool {
	return t.saved.Has(offset, leaderEpoch)
}

// InheritedAttempt is the attempt that an earlier owner left a record at; 0 if it left
// none for any record.
func (t *Tracker) InheritedAttempt(offset int64, leaderEpoch int32) int {
	if t.saved.attempts == nil {
		return 0
	}
	return t.saved.Attempt(offset, leaderEpoch)
}
