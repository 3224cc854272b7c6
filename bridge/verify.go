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

// Verification is the account of a ledger. The lists hold identities in order.
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

	Missing  []string // taken and never arrived
	Changed  []string // content differs between two copies, or between ledger and target
	Extra    []string // at the target, and not known to the ledger
	Repeated []string // more than one copy was confirmed, or is at the target
	Aside    []string // parked: the order of their keys is not known until they are forwarded
	Round    []string // looped
	Inverted []string // arrived before an earlier message of their key
	// At is where the target has the messages of Changed, Extra and Repeated: topic, partition
	// and offset of each copy, where the target is a log.
	At   map[string][]Place
	Torn int64 // bytes at the end of files that a killed process left unfinished

	Reread  int // messages read at the target; 0 = the target was not read
	Foreign int // of these, messages that no bridge forwarded
}

// Place is where a log has a message.
type Place struct {
	Topic     string
	Partition int32
	Offset    uint64
}

// OK says that nothing is missing, changed, added or out of order.
func (v *Verification) OK() bool {
	return len(v.Missing) == 0 && len(v.Changed) == 0 && len(v.Extra) == 0 && v.Inversions == 0
}

// String is the account in a few lines.
func (v *Verification) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "content  %d taken, %d confirmed", v.Taken, v.Confirmed)
	if v.Returned > 0 {
		fmt.Fprintf(&b, ", %d taken back", v.Returned)
	}
	if v.Reread > 0 {
		fmt.Fprintf(&b, ", %d read at the target (%d of them not from a bridge)", v.Reread, v.Foreign)
	}
	fmt.Fprintf(&b, "\n         missing %d, extra %d, changed %d, copies %d, parked %d, looped %d, without identity %d\norder    %d keys, %d inversions of first copies",
		len(v.Missing), len(v.Extra), len(v.Changed), v.Copies, v.Parked, v.Looped, v.Anonymous, v.Keys, v.Inversions)
	return b.String()
}

// Verify adds up what the ledger in dir says. With a target that keeps what was read from it, as
// a Kafka topic does, the target is read again as independent evidence, up to its end as it is
// then; nil trusts the confirmations. It may run while routes write, and be repeated: a message
// on its way is not missing.
func Verify(ctx context.Context, dir string, target transport.Source) (*Verification, error) {
	v := &Verification{}
	at, err := v.add(ctx, dir, target)
	for range settleLooks {
		if err != nil || len(v.Missing) == 0 {
			break
		}
		var more bool
		if more, err = v.settle(ctx, dir); !more {
			break
		}
	}
	if err != nil || target == nil {
		return v, err
	}
	return v, v.reread(ctx, dir, target, at)
}

// While routes write, messages are on their way: Verify looks again so often, with this pause.
const (
	settleLooks = 10
	settlePause = 500 * time.Millisecond
)

// add reads the ledger, and returns what it says the target must have.
func (v *Verification) add(ctx context.Context, dir string, target transport.Source) (map[string][16]byte, error) {
	confirmed := map[string][16]byte{}
	only, err := v.placeOf(ctx, dir, target)
	if err != nil {
		return nil, err
	}
	a, err := ledger.Sum(v.records(ctx, dir, func(r *ledger.Record) {
		switch {
		case target == nil || r.ID == "":
		case r.Kind == ledger.Confirmed && (only == 0 || r.To == only):
			confirmed[r.ID] = r.Digest
		case r.Kind == ledger.Returned && (only == 0 || r.From == only):
			delete(confirmed, r.ID)
		}
	}))
	if err != nil {
		return nil, err
	}
	v.Taken, v.Confirmed, v.Parked, v.Looped, v.Copies, v.Anonymous = a.Taken, a.Confirmed, a.Parked, a.Looped, a.Copies, a.Anonymous
	v.Returned, v.Keys, v.Inversions = a.Returned, a.Keys, a.Inversions
	v.Missing, v.Changed, v.Repeated, v.Aside, v.Round, v.Inverted = a.Missing, a.Changed, a.Repeated, a.Aside, a.Round, a.Inverted
	return confirmed, nil
}

// placeOf is the target's number in the ledger, which may be of several routes; 0 if the ledger
// does not know the target under this address.
func (v *Verification) placeOf(ctx context.Context, dir string, target transport.Source) (uint64, error) {
	d, ok := target.(transport.Describer)
	if !ok {
		return 0, nil
	}
	is := hashOf(token(d.Describe()))
	for r, err := range v.records(ctx, dir, func(*ledger.Record) {}) {
		if err != nil {
			return 0, err
		}
		if r.To == is {
			return is, nil
		}
	}
	return 0, nil
}

// settle takes from the missing what has arrived since. more: the ledger grew meanwhile, so it
// is worth another look.
func (v *Verification) settle(ctx context.Context, dir string) (more bool, err error) {
	if grows, err := grows(ctx, dir); err != nil || !grows {
		return false, err
	}
	missing := map[string]bool{}
	for _, id := range v.Missing {
		missing[id] = true
	}
	for r, err := range v.records(ctx, dir, func(*ledger.Record) {}) {
		if err != nil {
			return false, err
		}
		if r.Kind != ledger.Taken {
			delete(missing, r.ID)
		}
	}
	v.Missing = slices.Sorted(maps.Keys(missing))
	return len(v.Missing) > 0, nil
}

// grows reports whether the ledger has grown within a moment, which is longer than what is
// written stays in memory.
func grows(ctx context.Context, dir string) (bool, error) {
	before, err := ledger.Size(dir)
	if err != nil {
		return false, err
	}
	select {
	case <-time.After(settlePause):
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	after, err := ledger.Size(dir)
	return after != before, err
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

// copies is what the target has of one identity.
type copies struct {
	n     int
	first Place
}

// reread compares the target with what the ledger says it confirmed. The ledger was read
// first, so what it says must be there by now; what the target has beyond it may have been
// forwarded since, and is looked up in the ledger again.
func (v *Verification) reread(ctx context.Context, dir string, target transport.Source, confirmed map[string][16]byte) error {
	seen, beyond := make(map[string]copies, len(confirmed)), map[string]bool{}
	places := map[string][]Place{}
	err := scan(ctx, target, func(d *longshore.Delivery) {
		m := d.Received()
		v.Reread++
		if !m.Headers.Has(longshore.HeaderVia) {
			v.Foreign++
			return
		}
		id := ledger.ShortID(m.Headers.String(longshore.HeaderID))
		if id == "" {
			return
		}
		here := Place{d.Origin.Topic, d.Origin.Partition, d.Origin.Position}
		sum, known := confirmed[id]
		c := seen[id]
		if c.n++; c.n == 1 {
			c.first = here
		} else {
			places[id] = append(places[id], here)
		}
		seen[id] = c
		switch {
		case !known:
			beyond[id] = true
		case sum != digest(m):
			v.Changed = append(v.Changed, id)
		}
	})
	if err != nil {
		return err
	}
	for id := range confirmed {
		if seen[id].n == 0 {
			v.Missing = append(v.Missing, id)
		}
	}
	if err := v.lookUp(ctx, dir, beyond); err != nil {
		return err
	}
	v.Extra = slices.AppendSeq(v.Extra, maps.Keys(beyond))
	v.Repeated = slices.AppendSeq(v.Repeated, maps.Keys(places))
	for _, ids := range []*[]string{&v.Extra, &v.Missing, &v.Changed, &v.Repeated} {
		slices.Sort(*ids)
		*ids = slices.Compact(*ids)
	}
	v.locate(seen, places)
	return nil
}

// lookUp takes those out of beyond that the ledger knows by now. The target may have a message
// before the file has its record, so it looks again while routes write.
func (v *Verification) lookUp(ctx context.Context, dir string, beyond map[string]bool) error {
	for range settleLooks {
		for r, err := range v.records(ctx, dir, func(*ledger.Record) {}) {
			if err != nil {
				return err
			}
			delete(beyond, r.ID)
		}
		if len(beyond) == 0 {
			return nil
		}
		if grows, err := grows(ctx, dir); err != nil || !grows {
			return err
		}
	}
	return nil
}

// locate notes where the target has what is listed.
func (v *Verification) locate(seen map[string]copies, more map[string][]Place) {
	v.At = map[string][]Place{}
	for _, ids := range [][]string{v.Changed, v.Extra, v.Repeated} {
		for _, id := range ids {
			if c := seen[id]; c.n > 0 {
				v.At[id] = append([]Place{c.first}, more[id]...)
			}
		}
	}
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
