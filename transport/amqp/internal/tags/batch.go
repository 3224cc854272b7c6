package tags

import "github.com/longshore-go/longshore"

// Batch is what one pass sends: single methods first, then one ack that may be multiple,
// then single acks above it. It is used again for the next pass.
type Batch struct {
	Alone    []Single // returns and rejections, in the order of their settlements
	UpTo     uint64   // the highest tag of the contiguous acks; 0: there are none
	Multiple bool     // UpTo stands for all tags below it too
	Islands  []uint64 // acks above a tag that is not settled
}

// Empty reports whether there is nothing to send.
func (b *Batch) Empty() bool { return len(b.Alone) == 0 && b.UpTo == 0 && len(b.Islands) == 0 }

// Single is a settlement that goes in a method of its own.
type Single struct {
	Tag uint64 // of one delivery
	How How    // what the broker is told
}

// Pending is a settlement whose outcome is not known yet.
type Pending struct {
	Delivery   *longshore.Delivery  // nil: no caller waits for the outcome
	Settlement longshore.Settlement // as the handler decided
}

// Collect moves pending output from the ring into b. Acks above an unsettled delivery
// go singly, and only in the second pass that sees them, or if all are asked for: most of
// them become part of the contiguous acks meanwhile. With keepReturns, what goes back to
// the queue waits.
func (r *Ring) Collect(b *Batch, all, keepReturns bool) {
	b.Alone, b.Islands, b.UpTo, b.Multiple = b.Alone[:0], b.Islands[:0], 0, false
	kept := r.alone[:0]
	for _, tag := range r.alone {
		s := r.at(tag)
		if keepReturns && s.how == Nack {
			kept = append(kept, tag)
			continue
		}
		b.Alone = append(b.Alone, Single{tag, s.how})
		r.leave(s)
	}
	r.alone = kept
	acks, contiguous := 0, true
	for tag, s := range r.span(r.base) {
		switch {
		case s.state == Sent:
		case s.state != Acked:
			contiguous = false
		case contiguous:
			b.UpTo = tag
			acks++
			r.leave(s)
			r.unsent--
		case all || s.old:
			b.Islands = append(b.Islands, tag)
			r.leave(s)
			r.unsent--
		default:
			s.old = true
		}
		if r.unsent == 0 {
			break
		}
	}
	b.Multiple = acks > 1
	r.advance()
}

// leave notes that a settlement is sent.
func (r *Ring) leave(s *slot) {
	r.written = append(r.written, Pending{s.d, s.s})
	*s = slot{state: Sent}
	r.open--
}

// advance moves the base above what is sent.
func (r *Ring) advance() {
	for r.base < r.top && r.at(r.base).state == Sent {
		*r.at(r.base) = slot{}
		r.base++
	}
	r.next = max(r.next, r.base)
}

// Confirm notes that the broker has read everything that was sent.
func (r *Ring) Confirm() {
	clear(r.written)
	r.written = r.written[:0]
}
