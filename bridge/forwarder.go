package bridge

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge/internal/ledger"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
)

// forwarder is the handler of a route: it publishes what it receives and returns once the
// target has confirmed it.
type forwarder struct {
	name        string
	from, to    string // tokens of the two places
	fromID      uint64 // their hashes
	toID        uint64
	identity    IdentityRule
	deadLetters bool                 // what is moved are dead letters: they do not expire again
	keeps       bool                 // the source's broker does not remove messages that have expired
	log         bool                 // the source is a partitioned log: a position belongs to one message
	ordered     bool                 // the source keeps an order, so that of each key is recorded and kept
	ledger      *ledger.Ledger       // nil: none
	attempts    int                  // after so many a message that the target refuses is parked
	returns     bool                 // messages go back to where they came from, see Config.Return
	stop        chan<- *StoppedError // takes why the route must stop; nil: unsendable messages are parked
	now         func() time.Time     // for the age of messages
	count       counters
	failing     failing // why nothing can be forwarded

	// target is set by Start, before the container's.
	target atomic.Pointer[batches]
}

// counters are written by the container's workers.
type counters struct {
	forwarded, bytes, looped, skipped, parked, renamed, anonymous atomic.Int64
	age                                                           atomic.Int64 // of the message forwarded last, in nanoseconds
}

// Handle moves one message. An error for which the message is to blame parks it; any other
// says that the target cannot be reached, and the breaker around the handler stops the intake.
func (f *forwarder) Handle(ctx context.Context, d *longshore.Delivery) error {
	m := longshore.Forwarded(d)
	sum := digest(m)
	path, copied := viaOf(m.Headers, sum)
	rec := ledger.Record{Digest: sum, From: f.fromID, To: f.toID, ID: f.identity(d)}
	if f.ordered {
		rec.Key = keyHash(m.Key)
	}
	if f.log {
		rec.Pos = positionOf(&d.Origin)
	}
	what := facts{viaTarget: path.has(f.to), copied: copied, hops: len(path.places), expired: f.expired(m)}
	if f.ledger != nil {
		known := f.ledger.Ask(rec)
		what.loops, what.done, what.copied = known == ledger.Loops, known == ledger.Done, copied || known == ledger.Differs
		what.keyParked = f.ledger.KeyParked(rec)
	}
	if f.returns {
		path, what.viaTarget, what.loops = path.back(f.to), false, false
	}
	switch what.decide() {
	case drop:
		err := f.record(ctx, rec, ledger.Looped)
		if err == nil {
			f.count.looped.Add(1)
		}
		return err
	case skip:
		f.count.skipped.Add(1)
		return nil
	case parkHops:
		return f.park(ctx, rec, &longshore.Error{Code: longshore.CodeHops, Op: "forward a message", Source: f.name,
			Err:  fmt.Errorf("it has passed %d places", len(path.places)),
			Hint: "look for bridges that form a ring, in the header " + longshore.HeaderVia})
	case parkExpired:
		rec.Key = 0 // it would be gone on its own broker, so later messages of its key go on
		return f.park(ctx, rec, &longshore.Error{Code: longshore.CodeExpired, Op: "forward a message", Source: f.name,
			Err:  fmt.Errorf("its expiration of %s was over at %s", m.Expiration, m.Timestamp.Add(m.Expiration).UTC().Format(time.RFC3339)),
			Hint: "remove it from the parking place, or unpark it, which forwards it without an expiration"})
	case parkBehind:
		return f.park(ctx, rec, &longshore.Error{Code: longshore.CodeBusy, Op: "forward a message", Source: f.name,
			Err: errors.New("an earlier message of its key is parked"), Hint: "forward the parked messages first, then release the key"})
	case rename:
		if rec.ID != "" {
			rec.ID += "~" + hex.EncodeToString(sum[:6])
		}
		err := f.deliver(ctx, m, path, rec, d.Attempt)
		if err == nil {
			f.count.renamed.Add(1)
		}
		return err
	case forward:
	}
	return f.deliver(ctx, m, path, rec, d.Attempt)
}

// expired tells whether the message would be gone by now on a broker that removes such messages:
// forwarded, it would live once more. A rollback takes everything back.
func (f *forwarder) expired(m *longshore.Message) bool {
	return f.keeps && !f.deadLetters && !f.returns && m.Expiration > 0 && !m.Timestamp.IsZero() && f.now().After(m.Timestamp.Add(m.Expiration))
}

// positionOf is a number for a place in a log; 0 is none.
func positionOf(o *longshore.Origin) uint64 {
	h := fnv.New64a()
	var at [12]byte
	binary.BigEndian.PutUint32(at[:], uint32(o.Partition)) //nolint:gosec // any bits will do
	binary.BigEndian.PutUint64(at[4:], o.Position)
	_, _ = h.Write(at[:]) // never fails
	_, _ = h.Write([]byte(o.Topic))
	return max(h.Sum64(), 1)
}

// deliver gives the message its identity and its way, and sends it. nil means that the target
// has it.
func (f *forwarder) deliver(ctx context.Context, m *longshore.Message, path via, rec ledger.Record, attempt int) error {
	m.Headers = slices.DeleteFunc(m.Headers, func(h longshore.Header) bool { // Forwarded made them: they are ours
		return h.Name == longshore.HeaderVia || h.Name == longshore.HeaderID
	})
	if rec.ID != "" {
		m.Headers = append(m.Headers, longshore.Header{Name: longshore.HeaderID, Value: rec.ID})
	}
	if !f.returns {
		path = path.through(f.from)
	}
	if len(path.places) > 0 {
		m.Headers = append(m.Headers, longshore.Header{Name: longshore.HeaderVia, Value: path.String()})
	}
	if f.deadLetters {
		m.Expiration = 0
	}
	if err := f.send(ctx, m, rec, attempt); err != nil {
		return err
	}
	if rec.ID == "" {
		f.count.anonymous.Add(1)
	}
	f.count.forwarded.Add(1)
	f.count.bytes.Add(int64(len(m.Body)))
	if !m.Timestamp.IsZero() {
		f.count.age.Store(int64(f.now().Sub(m.Timestamp)))
	}
	return nil
}

// send publishes, with a record before and after. The first one is written while the target
// works; the message is settled when both are.
func (f *forwarder) send(ctx context.Context, m *longshore.Message, rec ledger.Record, attempt int) error {
	written, err := f.begin(rec)
	if err != nil {
		return err
	}
	err = f.target.Load().publish(ctx, m)
	if werr := written(ctx); werr != nil {
		return f.unwritten(werr)
	}
	if err == nil || refused(err) || transport.Permanent(err) {
		f.failing.clear() // both sides work
	}
	unsendable := transport.Permanent(err) || refused(err) && attempt >= f.attempts
	switch {
	case err == nil && f.returns:
		return f.record(ctx, rec, ledger.Returned)
	case err == nil:
		return f.record(ctx, rec, ledger.Confirmed)
	case unsendable && f.stop != nil:
		select {
		case f.stop <- &StoppedError{Reason: Unsendable, Err: fmt.Errorf("message %q: %w", rec.ID, err)}:
		default: // another message has stopped it
		}
		return breaker.Unavailable(err) // it goes back as it is
	case unsendable:
		return f.park(ctx, rec, err)
	case refused(err): // it may be full, or this message may be at fault
		return err
	default:
		if ctx.Err() == nil { // otherwise the delivery has ended, and the target has not failed
			f.failing.note("target", err)
		}
		return breaker.Unavailable(err)
	}
}

// begin records that the message is about to be published; written waits for that.
func (f *forwarder) begin(rec ledger.Record) (written func(context.Context) error, err error) {
	if f.ledger == nil {
		return func(context.Context) error { return nil }, nil
	}
	rec.Kind = ledger.Taken
	p, err := f.ledger.Begin(rec)
	if err != nil {
		return nil, f.unwritten(err)
	}
	return p.Wait, nil
}

// unwritten holds the route until the ledger can be written again.
func (f *forwarder) unwritten(err error) error {
	err = fmt.Errorf("the ledger cannot be written: %w", err)
	f.failing.note("ledger", err)
	return breaker.Unavailable(err)
}

// refused tells whether the target has answered, and does not take the message now.
func refused(err error) bool { return longshore.CodeOf(err) == longshore.CodeRefused }

// park records that the message is set aside, and has the container move it to the parking
// place on the source's broker.
func (f *forwarder) park(ctx context.Context, rec ledger.Record, why error) error {
	if err := f.record(ctx, rec, ledger.Parked); err != nil {
		return err
	}
	f.count.parked.Add(1)
	return longshore.Reject(why)
}

// record writes to the ledger. If that fails nothing is moved until it works again.
func (f *forwarder) record(ctx context.Context, rec ledger.Record, kind ledger.Kind) error {
	if f.ledger == nil {
		return nil
	}
	rec.Kind = kind
	if err := f.ledger.Add(ctx, rec); err != nil {
		return f.unwritten(err)
	}
	return nil
}
