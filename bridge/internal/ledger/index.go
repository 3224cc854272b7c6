package ledger

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// entry is what is remembered of one message. It has no pointers: there are half a million, and the
// garbage collector would visit each.
type entry struct {
	id     uint64   // hash of the identity
	digest [16]byte // of the contents, bound to the identity
	pos    uint64   // at the source, of its last confirmation; 0: not known
	places uint32   // where it was and is: a number of index.lists
	way    uint32   // of that confirmation: a number of index.ways
}

// passed is a way between two places.
type passed struct{ from, to uint64 }

// index remembers the messages that were taken last, by a hash of the identity and up to a limit. Of
// two identities with one hash, which one message in 10 to the 13 may meet, the later one takes the
// place of the other: their digests differ, so it is forwarded under an identity of its own.
type index struct {
	limit   int
	seed    maphash.Seed
	binds   maphash.Seed      // of the hash that binds a digest to its identity
	byID    map[uint64]uint32 // where the entry is in entries
	entries []entry           // a ring, in the order in which they came
	next    int               // where the ring goes on
	lists   [][]uint64        // lists of places in the order in which a message came there; few differ
	ways    []passed          // of the routes that share the ledger
}

func newIndex(limit int) index {
	return index{limit: limit, seed: maphash.MakeSeed(), binds: maphash.MakeSeed(), byID: map[uint64]uint32{}, lists: [][]uint64{nil}}
}

// put notes that the message is at both places of the record. Messages without an identity
// are not remembered: one of them cannot be told from another.
func (x *index) put(r *Record) {
	if r.ID == "" {
		return
	}
	e := x.entry(maphash.String(x.seed, r.ID))
	if digest := x.bound(r.Digest, r.ID); e.digest != digest {
		*e = entry{id: e.id, digest: digest}
	}
	if (r.Kind == Confirmed || r.Kind == Returned) && r.Pos != 0 {
		e.pos, e.way = r.Pos, x.wayOf(passed{r.From, r.To})
	}
	if r.Kind == Returned { // from there it may be forwarded again
		e.places = x.listOf([]uint64{r.To})
		return
	}
	for _, place := range []uint64{r.From, r.To} {
		if at := x.lists[e.places]; !slices.Contains(at, place) {
			e.places = x.listOf(append(slices.Clip(at), place))
		}
	}
}

// bound is a digest that differs for another identity, also where the contents are equal.
func (x *index) bound(digest [16]byte, id string) [16]byte {
	part := digest[:8]
	binary.LittleEndian.PutUint64(part, binary.LittleEndian.Uint64(part)^maphash.String(x.binds, id))
	return digest
}

// entry is that of an identity. A new one takes the place of the oldest.
func (x *index) entry(id uint64) *entry {
	if i, known := x.byID[id]; known {
		return &x.entries[i]
	}
	if len(x.entries) < x.limit {
		x.byID[id] = uint32(len(x.entries)) //nolint:gosec // below the limit
		x.entries = append(x.entries, entry{id: id})
		return &x.entries[len(x.entries)-1]
	}
	e := &x.entries[x.next]
	delete(x.byID, e.id)
	x.byID[id] = uint32(x.next) //nolint:gosec // below the limit
	x.next = (x.next + 1) % x.limit
	*e = entry{id: id}
	return e
}

// listOf is the number of a list of places.
func (x *index) listOf(places []uint64) uint32 {
	i := slices.IndexFunc(x.lists, func(l []uint64) bool { return slices.Equal(l, places) })
	if i < 0 {
		i = len(x.lists)
		x.lists = append(x.lists, places)
	}
	return uint32(i) //nolint:gosec // few
}

// wayOf is the number of a way.
func (x *index) wayOf(way passed) uint32 {
	i := slices.Index(x.ways, way)
	if i < 0 {
		i = len(x.ways)
		x.ways = append(x.ways, way)
	}
	return uint32(i) //nolint:gosec // few
}

// Known is what the ledger says of a message that arrived.
type Known uint8

// The answers.
const (
	Unknown Known = iota // nothing that matters
	Loops                // the same message came from the target to the source
	Differs              // the identity belongs to another content
	Done                 // the target has confirmed this very record of a log
)

// ask tells whether a message that arrived at from and is for to came from there, or is there
// already.
func (x *index) ask(r *Record) Known {
	if r.ID == "" {
		return Unknown
	}
	id := ShortID(r.ID)
	i, known := x.byID[maphash.String(x.seed, id)]
	if !known {
		return Unknown
	}
	e := &x.entries[i]
	if e.digest != x.bound(r.Digest, id) {
		return Differs
	}
	at := x.lists[e.places]
	from, to := slices.Index(at, r.From), slices.Index(at, r.To)
	if to >= 0 && to < from {
		return Loops
	}
	if r.Pos != 0 && e.pos == r.Pos && x.ways[e.way] == (passed{r.From, r.To}) {
		return Done
	}
	return Unknown
}
