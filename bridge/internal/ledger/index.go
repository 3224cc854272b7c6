package ledger

import "slices"

// entry is what is remembered of one message.
type entry struct {
	digest [16]byte
	places []uint64 // where it was and is, in the order in which it came there
	done   passed   // its last confirmation, if its position at the source is known
}

// passed is a confirmed way.
type passed struct{ from, to, pos uint64 }

// index remembers the messages that were taken last, by identity and up to a limit.
type index struct {
	limit  int
	byID   map[string]*entry
	oldest []string // a ring of the identities, in the order in which they came
	next   int      // where the ring goes on
}

func newIndex(limit int) index {
	return index{limit: limit, byID: map[string]*entry{}}
}

// put notes that the message is at both places of the record. Messages without an identity
// are not remembered: one of them cannot be told from another.
func (x *index) put(r *Record) {
	if r.ID == "" {
		return
	}
	e := x.byID[r.ID]
	if e == nil {
		e = &entry{}
		x.byID[r.ID] = e
		if len(x.oldest) < x.limit {
			x.oldest = append(x.oldest, r.ID)
		} else {
			delete(x.byID, x.oldest[x.next])
			x.oldest[x.next] = r.ID
			x.next = (x.next + 1) % x.limit
		}
	}
	if e.digest != r.Digest {
		*e = entry{digest: r.Digest}
	}
	if (r.Kind == Confirmed || r.Kind == Returned) && r.Pos != 0 {
		e.done = passed{r.From, r.To, r.Pos}
	}
	if r.Kind == Returned { // from there it may be forwarded again
		e.places = []uint64{r.To}
		return
	}
	for _, place := range []uint64{r.From, r.To} {
		if !slices.Contains(e.places, place) {
			e.places = append(e.places, place)
		}
	}
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
	e := x.byID[ShortID(r.ID)]
	switch {
	case e == nil || r.ID == "":
		return Unknown
	case e.digest != r.Digest:
		return Differs
	}
	from, to := slices.Index(e.places, r.From), slices.Index(e.places, r.To)
	if to >= 0 && to < from {
		return Loops
	}
	if r.Pos != 0 && e.done == (passed{r.From, r.To, r.Pos}) {
		return Done
	}
	return Unknown
}
