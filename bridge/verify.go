package bridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge/internal/ledger"
	"github.com/longshore-go/longshore/transport"
)

// Ledger records what routes move, in a directory of append-only files. It is safe for
// concurrent use.
type Ledger struct{ l *ledger.Ledger }

// OpenLedger opens the directory, which is made if it does not exist, and continues what
// earlier processes recorded. Close it after its routes have stopped.
func OpenLedger(dir string) (*Ledger, error) {
	l, err := ledger.Open(dir, time.Now)
	if err != nil {
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "open the ledger " + dir, Err: err, Hint: "name a directory that this process may write"}
	}
	return &Ledger{l: l}, nil
}

// Close ends the file. Stop the routes first: what they do afterwards is refused.
func (l *Ledger) Close() error { return l.l.Close() }

// ReleaseKeys forgets which keys have parked messages: later messages of those keys are
// forwarded again. Forward the parked messages first, with a route from the parking place.
func (l *Ledger) ReleaseKeys(ctx context.Context) error { return l.l.ReleaseKeys(ctx) }

// Verification is the account of a ledger.
type Verification struct {
	Taken      int // messages taken from sources
	Confirmed  int // messages that targets confirmed, each counted once
	Parked     int // messages set aside
	Looped     int // messages dropped because they came from the target
	Returned   int // messages that a return route took back
	Copies     int // confirmations beyond the first of a message
	Anonymous  int // messages without an identity, which cannot be compared
	Keys       int // ordering keys
	Inversions int // first copies confirmed before an earlier message of their key

	Missing []string // identities that were taken and never arrived
	Changed []string // identities whose content differs between two copies, or between ledger and target
	Extra   []string // identities at the target that the ledger does not know
	Torn    int64    // bytes at the end of files that a killed process left unfinished

	Reread  int // messages read at the target; 0 = the target was not read
	Foreign int // of these, messages that no bridge forwarded
}

// OK says that nothing is missing, changed, added or out of order.
func (v *Verification) OK() bool {
	return len(v.Missing) == 0 && len(v.Changed) == 0 && len(v.Extra) == 0 && v.Inversions == 0
}

// String is the account in a few lines.
func (v *Verification) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "content  %d taken, %d confirmed", v.Taken, v.Confirmed)
	if v.Reread > 0 {
		fmt.Fprintf(&b, ", %d read at the target (%d of them not from a bridge)", v.Reread, v.Foreign)
	}
	fmt.Fprintf(&b, "\n         missing %d, extra %d, changed %d, copies %d, parked %d, looped %d, without identity %d\norder    %d keys, %d inversions of first copies",
		len(v.Missing), len(v.Extra), len(v.Changed), v.Copies, v.Parked, v.Looped, v.Anonymous, v.Keys, v.Inversions)
	return b.String()
}

// Verify adds up what the ledger in dir says. With a target that keeps what was read from it, as
// a Kafka topic does, the target is read again as independent evidence; nil trusts the
// confirmations. It may run while routes write, and be repeated.
func Verify(ctx context.Context, dir string, target transport.Source) (*Verification, error) {
	v := &Verification{}
	confirmed := map[string][16]byte{} // by identity: content that the target confirmed
	a, err := ledger.Sum(v.records(ctx, dir, func(r *ledger.Record) {
		if target != nil && r.Kind == ledger.Confirmed && r.ID != "" {
			confirmed[r.ID] = r.Digest
		}
		if r.Kind == ledger.Returned {
			delete(confirmed, r.ID)
		}
	}))
	if err != nil {
		return nil, err
	}
	v.Taken, v.Confirmed, v.Parked, v.Looped, v.Copies, v.Anonymous = a.Taken, a.Confirmed, a.Parked, a.Looped, a.Copies, a.Anonymous
	v.Returned = a.Returned
	v.Keys, v.Inversions, v.Missing, v.Changed = a.Keys, a.Inversions, a.Missing, a.Changed
	if target == nil {
		return v, nil
	}
	return v, v.reread(ctx, dir, target, confirmed)
}

// records reads the ledger and shows each record to look.
func (v *Verification) records(ctx context.Context, dir string, look func(*ledger.Record)) iter.Seq2[ledger.Record, error] {
	v.Torn = 0
	return func(yield func(ledger.Record, error) bool) {
		for r, err := range ledger.Read(dir, func(t ledger.Torn) { v.Torn += t.Bytes }) {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err == nil {
				look(&r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// reread compares the target with what the ledger says it confirmed. The ledger was read
// first, so what it says must be there by now; what the target has beyond it may have been
// forwarded since, and is looked up in the ledger again.
func (v *Verification) reread(ctx context.Context, dir string, target transport.Source, confirmed map[string][16]byte) error {
	seen, beyond := map[string]bool{}, map[string]bool{}
	err := scan(ctx, target, func(d *longshore.Delivery) {
		m := d.Received()
		id := ledger.ShortID(m.Headers.String(longshore.HeaderID))
		v.Reread++
		sum, known := confirmed[id]
		switch {
		case !m.Headers.Has(longshore.HeaderVia):
			v.Foreign++
		case id == "":
		case !known:
			beyond[id] = true
		case sum != digest(m):
			v.Changed = append(v.Changed, id)
			seen[id] = true
		default:
			seen[id] = true
		}
	})
	if err != nil {
		return err
	}
	for id := range confirmed {
		if !seen[id] {
			v.Missing = append(v.Missing, id)
		}
	}
	for r, err := range v.records(ctx, dir, func(*ledger.Record) {}) {
		if err != nil {
			return err
		}
		delete(beyond, r.ID)
	}
	v.Extra = slices.AppendSeq(v.Extra, maps.Keys(beyond))
	slices.Sort(v.Extra)
	slices.Sort(v.Missing)
	slices.Sort(v.Changed)
	v.Missing, v.Changed = slices.Compact(v.Missing), slices.Compact(v.Changed)
	return nil
}

// scan shows every message that is at a place now, without taking any.
func scan(ctx context.Context, src transport.Source, each func(*longshore.Delivery)) error {
	if s, ok := src.(transport.Scanner); ok {
		_, err := s.Scan(ctx, math.MaxInt, func(d *longshore.Delivery) bool { each(d); return true })
		return err
	}
	b, ok := src.(transport.Browser)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "read the target of a bridge again", Err: errors.New("it can only be consumed"), Hint: "verify without a target"}
	}
	for from := ""; ; {
		page, next, err := b.Browse(ctx, from, 1000)
		if err != nil {
			return err
		}
		for _, d := range page {
			each(d)
		}
		if next == "" {
			return nil
		}
		from = next
	}
}
