package ledger

import (
	"iter"
	"slices"
)

// Account is what the records of a route add up to.
type Account struct {
	Taken, Confirmed int // messages, each counted once
	Parked, Looped   int // messages, each counted once
	Returned         int // messages that were taken back to where they came from
	Copies           int // confirmations beyond the first of a message: a crash repeats some
	Anonymous        int // messages without an identity; they are counted and cannot be compared
	Keys             int // ordering keys with confirmed messages
	Inversions       int // first copies confirmed before an earlier message of their key

	Missing  []string // taken, and neither confirmed nor parked
	Changed  []string // confirmed with different contents under one identity
	Repeated []string // confirmed more than once
	Aside    []string // parked and not confirmed since
	Round    []string // dropped as loops
	Inverted []string // confirmed before an earlier message of their key
}

// passage is one message on its way to one place.
type passage struct {
	id string
	to uint64
}

// life is what one message went through.
type life struct {
	digest                    [16]byte
	taken, confirmed, parked  bool
	looped, changed, returned bool
	repeated, inverted        bool
	order                     uint64 // number of the record by which it was taken
}

// Sum adds up records; those of one process must come in the order in which they were written.
func Sum(records iter.Seq2[Record, error]) (Account, error) {
	var a Account
	lives := map[passage]*life{}
	newest := map[lane]uint64{} // by key of a way: the order of the newest first copy
	var order uint64
	for r, err := range records {
		if err != nil {
			return a, err
		}
		order++
		if r.ID == "" {
			if r.Kind == Confirmed {
				a.Anonymous++
			}
			continue
		}
		p := passage{r.ID, r.To}
		m := lives[p]
		if m == nil {
			m = &life{}
			lives[p] = m
		}
		a.step(m, &r, order, newest)
		if r.Kind == Returned { // it may be forwarded again, as a new one
			delete(lives, passage{r.ID, r.From})
		}
	}
	a.Keys = len(newest)
	for p, m := range lives {
		a.end(p.id, m)
	}
	for _, ids := range [][]string{a.Missing, a.Changed, a.Repeated, a.Aside, a.Round, a.Inverted} {
		slices.Sort(ids)
	}
	return a, nil
}

func (a *Account) step(m *life, r *Record, order uint64, newest map[lane]uint64) {
	switch r.Kind {
	case Taken:
		if !m.taken {
			m.taken, m.order = true, order
		}
	case Confirmed:
		if m.confirmed {
			a.Copies++
			m.repeated = true
			m.changed = m.changed || m.digest != r.Digest
			return
		}
		m.confirmed, m.digest = true, r.Digest
		if r.Key == 0 {
			return
		}
		if k := laneOf(r); m.order < newest[k] {
			a.Inversions++
			m.inverted = true
		} else {
			newest[k] = m.order
		}
	case Parked:
		m.parked = true
	case Looped:
		m.looped = true
	case Returned:
		m.returned = true
	case Released:
	}
}

func (a *Account) end(id string, m *life) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	list := func(ids *[]string, is bool) {
		if is {
			*ids = append(*ids, id)
		}
	}
	aside := m.parked && !m.confirmed
	count(&a.Taken, m.taken)
	count(&a.Confirmed, m.confirmed)
	count(&a.Parked, aside)
	count(&a.Looped, m.looped)
	count(&a.Returned, m.returned)
	list(&a.Missing, m.taken && !m.confirmed && !m.parked && !m.returned)
	list(&a.Changed, m.changed)
	list(&a.Repeated, m.repeated)
	list(&a.Aside, aside)
	list(&a.Round, m.looped)
	list(&a.Inverted, m.inverted)
}
