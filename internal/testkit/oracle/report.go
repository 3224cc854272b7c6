package oracle

import (
	"fmt"
	"slices"
)

// Report compares the sets of a ledger.
type Report struct {
	Published, Done, Dead int
	Calls                 int      // of handlers, repeated ones included
	Lost                  []string // published, neither done nor dead
	Both                  []string // done and dead
	Twice                 []string // handled to the end more than once
	DeadTwice             []string // found more than once in the dead-letter destination
	Foreign               []string // handled, never published
	Inverted              []string // first ended after a later one of their key
	Overlapped            []string // ran while another of their key ran
	Err                   error    // the ledger is incomplete
}

// Report reads the ledger; call it when everything is idle.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Published: len(l.published), Dead: len(l.dead), Err: l.err}
	for id, rs := range l.runs {
		r.Calls += len(rs)
		ok := successes(rs)
		for _, x := range rs {
			if x.overlapped {
				r.Overlapped = append(r.Overlapped, id)
			}
		}
		if ok > 0 {
			r.Done++
		}
		if ok > 1 {
			r.Twice = append(r.Twice, id)
		}
		if ok > 0 && l.dead[id] > 0 {
			r.Both = append(r.Both, id)
		}
		if _, known := l.published[id]; !known {
			r.Foreign = append(r.Foreign, id)
		}
	}
	for id := range l.published {
		if l.dead[id] == 0 && successes(l.runs[id]) == 0 {
			r.Lost = append(r.Lost, id)
		}
	}
	for id, n := range l.dead {
		if n > 1 {
			r.DeadTwice = append(r.DeadTwice, id)
		}
	}
	r.Inverted = l.inverted()
	for _, ids := range [][]string{r.Lost, r.Both, r.Twice, r.DeadTwice, r.Foreign, r.Inverted, r.Overlapped} {
		slices.Sort(ids)
	}
	return r
}

func successes(rs []*run) int {
	n := 0
	for _, x := range rs {
		if x.ok {
			n++
		}
	}
	return n
}

// inverted compares, for each key, the order of the first success with the order
// of publishing. What is dead or lost does not take part.
func (l *Ledger) inverted() []string {
	var out []string
	for key, ids := range l.order {
		if key == "" {
			continue
		}
		latest := 0
		for _, id := range ids {
			first := 0
			for _, x := range l.runs[id] {
				if x.ok && (first == 0 || x.end < first) {
					first = x.end
				}
			}
			if first == 0 {
				continue
			}
			if first < latest {
				out = append(out, id)
			}
			latest = max(latest, first)
		}
	}
	return out
}

// Allow says how many deviations a fault permits. The zero value permits none.
// Order is checked only where it is asked for.
type Allow struct {
	Twice     int
	DeadTwice int // a publish whose confirm never came was repeated
	Overlaps  int
	Ordered   bool // keys were handled in order
}

// Problems lists what the ledger shows that must not be, with the first ten ids
// of each.
func (r Report) Problems(a Allow) []string {
	var out []string
	add := func(what string, ids []string, allowed int) {
		if len(ids) > allowed {
			out = append(out, fmt.Sprintf("%s: %d (allowed %d): %v", what, len(ids), allowed, ids[:min(10, len(ids))]))
		}
	}
	if r.Err != nil {
		out = append(out, fmt.Sprintf("the ledger is incomplete: %v", r.Err))
	}
	add("lost", r.Lost, 0)
	add("done and dead", r.Both, 0)
	add("dead twice", r.DeadTwice, a.DeadTwice)
	add("never published", r.Foreign, 0)
	add("done twice", r.Twice, a.Twice)
	if a.Ordered {
		add("out of order", r.Inverted, 0)
		add("overlapping in their key", r.Overlapped, a.Overlaps)
	}
	return out
}
