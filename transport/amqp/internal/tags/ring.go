package tags

import (
	"iter"

	"github.com/longshore-go/longshore"
)

// State is where a delivery tag is on its way. An ack with multiple must name a tag that
// is still open at the broker, so "settled" is two states: accepted from the handler, and
// sent.
//
//	Absent → Open → Acked | Alone → Sent
//	         Open ⇄ Copying → Acked | Alone
//	         Open | Alone → Kept, until the channel closes
type State uint8

const (
	Absent  State = iota // has not arrived yet
	Open                 // waits to be settled
	Copying              // a copy is being published; the original is settled after that
	Kept                 // was given back and stays unsettled until the channel closes
	Acked                // an ack was accepted and not sent
	Alone                // a return or a rejection was accepted and not sent
	Sent                 // the settlement was sent
)

// How is the AMQP method that carries out a settlement.
type How uint8

const (
	Ack    How = iota // basic.ack
	Nack              // basic.nack with requeue
	Reject            // basic.reject, to the dead-letter exchange
)

// slot is what the ring knows of one tag.
type slot struct {
	d     *longshore.Delivery  // nil once no caller waits for its outcome
	s     longshore.Settlement // what was accepted, for the report if it fails
	state State                // it only goes forward
	how   How                  // once it is decided
	old   bool                 // an accepted ack that one pass has left unsent
}

// outstanding reports whether the broker still waits for the tag's settlement.
func (s *slot) outstanding() bool { return s.state != Absent && s.state != Sent }

// Ring holds one slot for each tag from the lowest that is not sent to the highest that
// has arrived. Tags of a channel have no gaps, and a slow delivery keeps everything above
// it in the ring, so the ring outgrows the window where it must. It belongs to one
// channel; [Ring.End] is its last call.
type Ring struct {
	slots   []slot    // by tag; the length is a power of two
	base    uint64    // the lowest tag that is not sent
	next    uint64    // the next tag to hand out
	top     uint64    // above the highest tag that has arrived
	alone   []uint64  // tags with state Alone, in the order of their settlements
	unsent  int       // acks that were accepted and not sent
	open    int       // tags that have arrived and are not sent
	written []Pending // settlements that were sent and not confirmed
}

const firstSize = 64 // slots of a new ring; it grows by doubling

// New is the ring of a new channel, whose first tag is 1.
func New() Ring { return Ring{slots: make([]slot, firstSize), base: 1, next: 1, top: 1} }

func (r *Ring) at(tag uint64) *slot { return &r.slots[tag&uint64(len(r.slots)-1)] }

// span is the tags from one on, up to the highest that has arrived, with their slots.
func (r *Ring) span(from uint64) iter.Seq2[uint64, *slot] {
	return func(yield func(uint64, *slot) bool) {
		for tag := max(from, r.base); tag < r.top && yield(tag, r.at(tag)); tag++ {
		}
	}
}

// find returns the slot of a tag that has arrived and is not sent, nil if there is none.
func (r *Ring) find(tag uint64) *slot {
	if tag < r.base || tag >= r.top {
		return nil
	}
	if s := r.at(tag); s.outstanding() {
		return s
	}
	return nil
}

// Find returns the delivery and the state of a tag that has arrived and is not sent. The
// state is Absent for any other tag.
func (r *Ring) Find(tag uint64) (*longshore.Delivery, State) {
	s := r.find(tag)
	if s == nil {
		return nil, Absent
	}
	return s.d, s.state
}

// Arrive adds a delivery. Tags may arrive a little out of order, because each consumer on
// a channel passes its deliveries on by itself.
func (r *Ring) Arrive(tag uint64, d *longshore.Delivery) {
	if tag < r.base {
		return
	}
	for tag-r.base >= uint64(len(r.slots)) {
		r.grow()
	}
	*r.at(tag) = slot{d: d, state: Open}
	r.top = max(r.top, tag+1)
	r.open++
}

func (r *Ring) grow() {
	slots := make([]slot, 2*len(r.slots))
	for tag, s := range r.span(r.base) {
		slots[tag&uint64(len(slots)-1)] = *s
	}
	r.slots = slots
}

// Take appends up to n deliveries in the order of their tags. A tag is handed out only
// after the one before it.
func (r *Ring) Take(out []*longshore.Delivery, n int) []*longshore.Delivery {
	for ; n > 0 && r.next < r.top; r.next++ {
		s := r.at(r.next)
		if s.state == Absent {
			break
		}
		if s.state != Open { // settled while it was buffered
			continue
		}
		out = append(out, s.d)
		n--
	}
	return out
}

// Drain calls each for every delivery that was not handed out, in the order of the tags,
// and hands out none of them afterwards. each may settle, copy or keep its tag.
func (r *Ring) Drain(each func(tag uint64, d *longshore.Delivery)) {
	for ; r.next < r.top; r.next++ {
		if s := r.at(r.next); s.state == Open {
			each(r.next, s.d)
		}
	}
}

// Buffered is the number of tags that were not handed out, gaps that may still fill
// included.
func (r *Ring) Buffered() int { return int(r.top - max(r.next, r.base)) } //nolint:gosec // bounded by memory

// Top is above the highest tag that has arrived. It grows with every new delivery.
func (r *Ring) Top() uint64 { return r.top }

// Outstanding is the number of tags that have arrived and are not sent.
func (r *Ring) Outstanding() int { return r.open }

// Unsent is the number of acks that were accepted and not sent.
func (r *Ring) Unsent() int { return r.unsent }

// Unconfirmed is the number of settlements that were sent and not confirmed.
func (r *Ring) Unconfirmed() int { return len(r.written) }

// Accept notes the settlement of a tag that is open or being copied.
func (r *Ring) Accept(tag uint64, verdict longshore.Settlement, how How) {
	s := r.find(tag)
	s.s, s.how = verdict, how
	if how == Ack {
		s.state = Acked
		r.unsent++
		return
	}
	s.state = Alone
	r.alone = append(r.alone, tag)
}

// Disown makes nobody wait for the outcome of a tag: it was buffered and never handed out.
func (r *Ring) Disown(tag uint64) {
	if s := r.find(tag); s != nil {
		s.d = nil
	}
}

// Copy notes that a copy of an open delivery is being published.
func (r *Ring) Copy(tag uint64) { r.find(tag).state = Copying }

// Reopen makes a delivery open again whose copy could not be published.
func (r *Ring) Reopen(tag uint64) { r.find(tag).state = Open }

// Keep leaves a tag unsettled until the channel closes, which returns it.
func (r *Ring) Keep(tag uint64) { r.find(tag).keep() }

func (s *slot) keep() { s.state, s.d = Kept, nil }

// KeepReturned leaves every return that was accepted and not sent unsettled until the
// channel closes.
func (r *Ring) KeepReturned() {
	kept := r.alone[:0]
	for _, tag := range r.alone {
		if s := r.at(tag); s.how == Nack {
			s.keep()
			continue
		}
		kept = append(kept, tag)
	}
	r.alone = kept
}

// Hold keeps a tag that has just arrived from being handed out.
func (r *Ring) Hold(tag uint64) {
	if s := r.find(tag); s != nil {
		s.keep()
	}
	for next, s := range r.span(r.next) {
		if s.state != Kept {
			break
		}
		r.next = next + 1
	}
}

// Forget drops a tag for which nothing is sent.
func (r *Ring) Forget(tag uint64) {
	*r.find(tag) = slot{state: Sent}
	r.open--
	if tag == r.base {
		r.advance()
	}
}

// Highest returns the highest tag that is not sent, 0 if there is none.
func (r *Ring) Highest() uint64 {
	highest := uint64(0)
	for tag, s := range r.span(r.base) {
		if s.outstanding() {
			highest = tag
		}
	}
	return highest
}

// OutstandingFrom is the number of tags from a tag on that have arrived and are not sent.
func (r *Ring) OutstandingFrom(tag uint64) (n int) {
	if tag <= r.base {
		return r.open
	}
	for _, s := range r.span(tag) {
		if s.outstanding() {
			n++
		}
	}
	return n
}

// Oldest returns the delivery of the lowest tag that was handed out and is not settled.
func (r *Ring) Oldest() *longshore.Delivery {
	for tag, s := range r.span(r.base) {
		if tag < r.next && s.d != nil && (s.state == Open || s.state == Copying) {
			return s.d
		}
	}
	return nil
}

// OldestBuffered returns the delivery of the lowest tag that was not handed out.
func (r *Ring) OldestBuffered() *longshore.Delivery {
	for _, s := range r.span(r.next) {
		if s.d != nil && s.state == Open {
			return s.d
		}
	}
	return nil
}

// Ended is what a channel leaves behind.
type Ended struct {
	Lost        []*longshore.Delivery // handed out and not settled
	Unsent      []Pending             // accepted and not sent
	Unconfirmed []Pending             // sent, and the broker has not confirmed it
}

// End returns unsettled deliveries and empties the ring. A settlement that no caller waits for
// is left out.
func (r *Ring) End() (e Ended) {
	for tag, s := range r.span(r.base) {
		switch {
		case s.d == nil:
		case s.state == Acked || s.state == Alone:
			e.Unsent = append(e.Unsent, Pending{s.d, s.s})
		case tag < r.next && (s.state == Open || s.state == Copying):
			e.Lost = append(e.Lost, s.d)
		}
	}
	for _, p := range r.written {
		if p.Delivery != nil {
			e.Unconfirmed = append(e.Unconfirmed, p)
		}
	}
	*r = New()
	return e
}
