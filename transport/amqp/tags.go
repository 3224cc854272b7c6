package amqp

import "github.com/longshore-go/longshore"

// tagState is where a delivery tag is on its way. An ack with multiple must name
// a tag that is still open at the broker, so "settled" is two states: accepted
// from the handler, and sent.
type tagState uint8

const (
	tagAbsent tagState = iota // not arrived yet
	tagOpen                   // to be settled
	tagBusy                   // a copy is being published, and settles it; or it stays till the channel ends
	tagAcked                  // ack accepted, not sent
	tagAlone                  // return or rejection accepted, not sent
	tagSent                   // sent
)

// settleHow is the method that carries a settlement out.
type settleHow uint8

const (
	howAck    settleHow = iota
	howNack             // basic.nack, requeue
	howReject           // basic.reject to the dead-letter exchange
)

func (h settleHow) returns() bool { return h == howNack }

type slot struct {
	d     *longshore.Delivery
	s     longshore.Settlement
	state tagState
	how   settleHow
	old   bool // an accepted ack that one pass has left unsent
}

// tags holds one slot for each tag from the lowest that is not sent to the
// highest that arrived. Tags of a channel have no gaps, and a slow delivery keeps
// everything above it, so the ring outgrows the window where it must.
type tags struct {
	ring   []slot // its length is a power of two
	base   uint64 // lowest tag that is not sent
	next   uint64 // next tag to hand out
	top    uint64 // above the highest tag that arrived
	alone  []uint64
	unsent int // acks accepted and not sent
	open   int // arrived and not sent
}

func newTags() tags { return tags{ring: make([]slot, 64), base: 1, next: 1, top: 1} }

func (t *tags) at(tag uint64) *slot { return &t.ring[tag&uint64(len(t.ring)-1)] }

// find returns the slot of a tag that arrived and was not sent, nil if there is none.
func (t *tags) find(tag uint64) *slot {
	if tag < t.base || tag >= t.top {
		return nil
	}
	if s := t.at(tag); s.state != tagAbsent && s.state != tagSent {
		return s
	}
	return nil
}

// arrive adds a delivery. Tags may arrive a little out of order, because each
// consumer on a channel has its own way here.
func (t *tags) arrive(tag uint64, d *longshore.Delivery) {
	if tag < t.base {
		return
	}
	for tag-t.base >= uint64(len(t.ring)) {
		t.grow()
	}
	*t.at(tag) = slot{d: d, state: tagOpen}
	t.top = max(t.top, tag+1)
	t.open++
}

func (t *tags) grow() {
	ring := make([]slot, 2*len(t.ring))
	for tag := t.base; tag < t.top; tag++ {
		ring[tag&uint64(len(ring)-1)] = *t.at(tag)
	}
	t.ring = ring
}

// take appends up to n deliveries in the order of their tags: a tag is handed out
// only after the one before it.
func (t *tags) take(out []*longshore.Delivery, n int) []*longshore.Delivery {
	for ; n > 0 && t.next < t.top; t.next++ {
		s := t.at(t.next)
		if s.state == tagAbsent {
			break
		}
		if s.state != tagOpen { // given back while it was buffered
			continue
		}
		out = append(out, s.d)
		n--
	}
	return out
}

// buffered counts what was not handed out, without gaps that may still fill.
func (t *tags) buffered() int { return int(t.top - max(t.next, t.base)) }

// accept notes a settlement of an open slot.
func (t *tags) accept(tag uint64, s *slot, v longshore.Settlement, how settleHow) {
	s.s, s.how = v, how
	if how == howAck {
		s.state = tagAcked
		t.unsent++
		return
	}
	s.state = tagAlone
	t.alone = append(t.alone, tag)
}

// batch is what one pass sends: single methods first, then one ack that may be
// multiple, then single acks above it.
type batch struct {
	alone    []single
	upTo     uint64 // highest tag of the contiguous part; 0 = none
	multiple bool
	islands  []uint64
	sent     []pending
}

type single struct {
	tag uint64
	how settleHow
}

// pending is a settlement that was written, but the broker has not shown that it
// read it.
type pending struct {
	d *longshore.Delivery
	s longshore.Settlement
}

// collect moves what is to be sent from the ring into b. Acks above an unsettled
// delivery go singly, and only in the second pass that sees them, or if all are
// asked for: most of them become part of the contiguous ones meanwhile. With keep,
// what goes back to the queue waits.
func (t *tags) collect(b *batch, all, keep bool) {
	b.alone, b.islands, b.upTo, b.multiple = b.alone[:0], b.islands[:0], 0, false
	kept := t.alone[:0]
	for _, tag := range t.alone {
		s := t.at(tag)
		if keep && s.how.returns() {
			kept = append(kept, tag)
			continue
		}
		b.alone = append(b.alone, single{tag, s.how})
		t.leave(s, b)
	}
	t.alone = kept
	acks, tag := 0, t.base
	for ; tag < t.top && (t.at(tag).state == tagAcked || t.at(tag).state == tagSent); tag++ {
		if t.at(tag).state == tagAcked {
			b.upTo = tag
			acks++
			t.leave(t.at(tag), b)
			t.unsent--
		}
	}
	b.multiple = acks > 1
	for ; tag < t.top && t.unsent > 0; tag++ {
		s := t.at(tag)
		if s.state != tagAcked {
			continue
		}
		if !all && !s.old {
			s.old = true
			continue
		}
		b.islands = append(b.islands, tag)
		t.leave(s, b)
		t.unsent--
	}
	t.advance()
}

func (t *tags) leave(s *slot, b *batch) {
	b.sent = append(b.sent, pending{s.d, s.s})
	*s = slot{state: tagSent}
	t.open--
}

func (t *tags) advance() {
	for t.base < t.top && t.at(t.base).state == tagSent {
		*t.at(t.base) = slot{}
		t.base++
	}
	t.next = max(t.next, t.base)
}

// stay keeps all that was given back, and not sent, unsettled until the channel closes.
func (t *tags) stay() {
	kept := t.alone[:0]
	for _, tag := range t.alone {
		if s := t.at(tag); s.how.returns() {
			s.stay()
			continue
		}
		kept = append(kept, tag)
	}
	t.alone = kept
}

// stay keeps a delivery that was given back unsettled until the channel closes.
func (s *slot) stay() { s.state, s.d = tagBusy, nil }

// hold keeps what has just arrived from being handed out.
func (t *tags) hold(tag uint64) {
	if s := t.find(tag); s != nil {
		s.stay()
	}
	for t.next < t.top && t.at(t.next).state == tagBusy {
		t.next++
	}
}

// highest returns the highest tag that is not sent, 0 if there is none.
func (t *tags) highest() uint64 {
	for tag := t.top; tag > t.base; tag-- {
		if s := t.at(tag - 1); s.state != tagSent && s.state != tagAbsent {
			return tag - 1
		}
	}
	return 0
}

// openFrom counts what arrived and was not sent, from a tag on.
func (t *tags) openFrom(tag uint64) (n int) {
	if tag <= t.base {
		return t.open
	}
	for ; tag < t.top; tag++ {
		if s := t.at(tag); s.state != tagSent && s.state != tagAbsent {
			n++
		}
	}
	return n
}

// forget drops a slot that nothing is sent for.
func (t *tags) forget(tag uint64, s *slot) {
	*s = slot{state: tagSent}
	t.open--
	if tag == t.base {
		t.advance()
	}
}
