package memory

import (
	"time"

	"github.com/longshore-go/longshore"
)

// inflight is what a consumer holds: messages that the queue has pushed to it and that
// are not settled. Those that Receive has not handed out yet wait in a buffer. It has no
// lock: the broker's guards it.
type inflight struct {
	slots  []slot        // by index; a free one has no entry
	free   []uint32      // slots to use again, so that a busy consumer allocates nothing
	buffer deque[uint32] // slots that Receive has not handed out, oldest first
	count  int           // slots in use; the window bounds it
}

// slot holds one message. Its generation is part of the token, so a token that was used
// up never names a later message in the same slot.
type slot struct {
	e       *entry               // nil: the slot is free
	d       *longshore.Delivery  // nil while buffered
	gen     uint32               // rises with each use of the slot
	pending bool                 // settled, and the broker has not carried it out yet
	verdict longshore.Settlement // what pending will do
	until   time.Time            // end of the lease; zero: none
}

func (s *slot) token(idx uint32) uint64 { return uint64(s.gen)<<32 | uint64(idx) }

// add puts a message into the buffer and returns its slot.
func (h *inflight) add(e *entry) uint32 {
	var idx uint32
	if n := len(h.free); n > 0 {
		idx = h.free[n-1]
		h.free = h.free[:n-1]
	} else {
		idx = uint32(len(h.slots))
		h.slots = append(h.slots, slot{gen: 1})
	}
	h.slots[idx].e = e
	h.count++
	h.buffer.push(idx)
	return idx
}

// at returns a slot by its index.
func (h *inflight) at(idx uint32) *slot { return &h.slots[idx] }

// find returns the slot of a token; nil if its message is gone.
func (h *inflight) find(token uint64) (uint32, *slot) {
	idx, gen := uint32(token), uint32(token>>32)
	if int(idx) >= len(h.slots) || h.slots[idx].gen != gen || h.slots[idx].e == nil {
		return 0, nil
	}
	return idx, &h.slots[idx]
}

// remove frees a slot. The caller has to put the message somewhere.
func (h *inflight) remove(idx uint32) (*entry, *longshore.Delivery) {
	s := &h.slots[idx]
	e, d := s.e, s.d
	if d == nil {
		h.unbuffer(idx)
	}
	*s = slot{gen: s.gen + 1}
	h.count--
	h.free = append(h.free, idx)
	return e, d
}

// unbuffer takes one slot out of the buffer.
func (h *inflight) unbuffer(idx uint32) {
	for _, i := range h.buffer.clear() {
		if i != idx {
			h.buffer.push(i)
		}
	}
}

// takeBuffer empties the buffer and returns its messages, oldest first.
func (h *inflight) takeBuffer() []*entry {
	all := h.buffer.clear()
	es := make([]*entry, len(all))
	for i, idx := range all {
		es[i], _ = h.remove(idx)
	}
	return es
}

// takeAll empties everything; each receives the message and its delivery, nil for one
// that was not handed out.
func (h *inflight) takeAll(each func(*entry, *longshore.Delivery)) {
	h.buffer.clear()
	for idx := range h.slots {
		if h.slots[idx].e != nil {
			each(h.remove(uint32(idx)))
		}
	}
}

// unsettled lists the slots that no verdict was made about.
func (h *inflight) unsettled() []uint32 {
	var open []uint32
	for idx := range h.slots {
		if s := &h.slots[idx]; s.e != nil && !s.pending {
			open = append(open, uint32(idx))
		}
	}
	return open
}

// groups adds the groups of which a message is held.
func (h *inflight) groups(to map[*group]bool) {
	for i := range h.slots {
		if e := h.slots[i].e; e != nil && e.group != nil {
			to[e.group] = true
		}
	}
}
