package sqs

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
)

// visibility is everything that a consumer holds, with the leases under which it holds
// it. It decides what is extended when, and which leases have ended. It makes no calls
// and reads no clock; the consumer's lock guards it.
type visibility struct {
	length  time.Duration    // of a new lease: the queue's visibility timeout, or the configured one
	byToken map[uint64]*held // every receipt
	byID    map[string]*held // by message id; further receipts of a message are not in it
	queue   leaseHeap        // by when each has to be looked at
	running int              // extension calls on their way
	behind  bool             // extensions are late, so nothing more may be received for now
}

// maxExtensions is how many extension calls run at once.
const maxExtensions = 8

func newVisibility(length time.Duration) visibility {
	return visibility{length: length, byToken: map[uint64]*held{}, byID: map[string]*held{}}
}

// add takes a message in. Its lease is not kept before keep is called.
func (v *visibility) add(h *held) { v.byToken[h.token], v.byID[h.id] = h, h }

// find returns a message that can still be settled; closed says that none can be.
func (v *visibility) find(token uint64, now time.Time, closed bool) (*held, error) {
	h := v.byToken[token]
	switch {
	case closed:
		return nil, longshore.ErrClosed
	case h == nil:
		return nil, longshore.ErrLost
	case h.settled != nil:
		return nil, longshore.ErrSettled
	case !h.deadline.After(now):
		return nil, longshore.ErrLost // the loop is about to report it
	}
	return h, nil
}

// holds reports whether this receipt is still held.
func (v *visibility) holds(h *held) bool { return v.byToken[h.token] == h }

// keep makes the lease be extended when a little more than half of it is left.
func (v *visibility) keep(h *held, now time.Time) {
	left := h.deadline.Sub(now)
	h.due = h.deadline.Add(-left/2 - left/10)
	if h.capped {
		h.due = h.deadline
	}
	v.schedule(h)
}

// schedule puts a lease where its time is among the others. The place in the heap is kept in the
// lease, counted from 1: 0 is not in it.
func (v *visibility) schedule(h *held) {
	if h.index > 0 {
		heap.Fix(&v.queue, h.index-1)
		return
	}
	heap.Push(&v.queue, h)
}

// unkeep lets the lease run out.
func (v *visibility) unkeep(h *held) {
	if h.index > 0 {
		heap.Remove(&v.queue, h.index-1)
	}
}

// forget drops a message that is settled, lost or returned.
func (v *visibility) forget(h *held) {
	v.unkeep(h)
	if !h.extending {
		h.extended = append(h.extended, h.more...)
		h.more = nil
		h.answer(errGone)
	}
	delete(v.byToken, h.token)
	if v.byID[h.id] == h {
		delete(v.byID, h.id)
	}
	v.forgetCopies(h)
	if m := h.of; m != nil {
		h.of = nil
		m.others = slices.DeleteFunc(m.others, func(x *held) bool { return x == h })
	}
}

// forgetAll drops everything.
func (v *visibility) forgetAll() {
	v.byToken, v.byID, v.queue = map[uint64]*held{}, map[string]*held{}, nil
}

// inOrder lists held deliveries in the order of their receipt.
func (v *visibility) inOrder() []*held {
	all := make([]*held, 0, len(v.byToken))
	for _, h := range v.byToken {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *held) int {
		if a.token < b.token {
			return -1
		}
		return 1
	})
	return all
}

// due takes out what has to be extended now, in batches, and the messages whose lease
// has ended.
func (v *visibility) due(now time.Time) (batches [][]*held, ended []*held) {
	var batch []*held
	full := func() {
		if len(batch) > 0 {
			batches = append(batches, batch)
			v.running++
			batch = nil
		}
	}
	defer func() { full() }()
	v.behind = false
	for len(v.queue) > 0 {
		h := v.queue[0]
		switch {
		case !h.deadline.After(now):
			v.unkeep(h)
			ended = append(ended, h)
			continue
		case h.due.After(now) && (len(batch) == 0 || h.due.After(now.Add(v.length/10))):
			return batches, ended
		case h.extending || h.capped: // nothing can be done before its end
			if h.due.Equal(h.deadline) {
				return batches, ended
			}
			h.due = h.deadline
			v.schedule(h)
			continue
		case v.running >= maxExtensions:
			// Calls take longer than leases last. Nothing more is received, and since the
			// heap is in the order of extensions, each lease is looked at for its end.
			v.behind = now.Sub(h.due) > v.length/8
			for _, x := range slices.Clone(v.queue) {
				if !x.deadline.After(now) {
					v.unkeep(x)
					ended = append(ended, x)
				}
			}
			return batches, ended
		}
		h.extending, h.due = true, h.deadline
		v.schedule(h)
		if h.alone {
			full()
		}
		batch = append(batch, h)
		if len(batch) == maxBatch || h.alone {
			full()
		}
	}
	return batches, ended
}

// next is when to look again; zero: nothing is kept.
func (v *visibility) next(now time.Time) time.Time {
	switch {
	case len(v.queue) == 0:
		return time.Time{}
	case v.running >= maxExtensions:
		return now.Add(100 * time.Millisecond)
	}
	return v.queue[0].due
}

// extension is one entry of an extension call.
type extension struct {
	h       *held         // whose lease it is
	receipt string        // of the message when the call was made
	length  time.Duration // the new timeout, in whole seconds; 0: the twelve hours are used up
	send    bool          // false: settled since it was chosen, or as old as it may get
}

// extensions makes the entries of a call.
func (v *visibility) extensions(batch []*held, now time.Time) []extension {
	out := make([]extension, len(batch))
	for i, h := range batch {
		length := v.extendBy(h, now)
		out[i] = extension{h: h, receipt: h.receipt, length: length, send: h.after == nil && length > 0}
	}
	return out
}

// extendBy is the new timeout of a message: the queue's, or what its handler asked for,
// within the twelve hours.
func (v *visibility) extendBy(h *held, now time.Time) time.Duration {
	length, asked := v.length, h.asked
	if h.of != nil {
		asked = h.of.asked
	}
	if asked > 0 {
		length = asked
	}
	if left := h.hideable(now); left < length {
		h.capped = true
		return left
	}
	return length
}

// extended takes the outcome of an entry whose call began at sent. It returns a
// settlement that waited for the call, and whether the message is lost.
func (v *visibility) extended(e *extension, sent, now time.Time, err error) (after *op, lost bool) {
	h := e.h
	h.extending = false
	if after = h.after; after != nil {
		h.after = nil
		return after, false
	}
	if !v.holds(h) || h.phase() == phaseLeaving {
		return nil, false
	}
	switch {
	case e.receipt != h.receipt: // the call was about an earlier receipt
		v.keep(h, now)
	case err == nil:
		h.deadline = sent.Add(e.length)
		v.keep(h, now)
	case gone(err):
		return nil, true
	default:
		retry := min(max(v.length/20, 100*time.Millisecond), 2*time.Second)
		h.capped = false
		h.due = now.Add(retry)
		if h.due.After(h.deadline) {
			h.due = h.deadline
		}
		v.schedule(h)
	}
	return nil, false
}

// exhaust gives a lease up that cannot be made longer: it lasts until its deadline.
func (v *visibility) exhaust(h *held) {
	h.capped, h.due = true, h.deadline
	v.schedule(h)
}

// ask notes a wish of the handler for a lease from now on; done receives the outcome.
// It reports whether a call is due at once, or one that is on its way comes first.
func (v *visibility) ask(h *held, length time.Duration, now time.Time, done chan error) (atOnce bool) {
	h.asked = length
	h.capped = false // the wish may be shorter than what was left
	h.more = append(h.more, done)
	return v.askMore(h, now)
}

// askMore makes an extension due that was asked for while another was on its way.
func (v *visibility) askMore(h *held, now time.Time) bool {
	if len(h.more) == 0 || h.extending {
		return false
	}
	h.extended, h.more = append(h.extended, h.more...), nil
	if !v.holds(h) || h.settled != nil {
		h.answer(errGone)
		return false
	}
	h.due = now
	v.schedule(h)
	return true
}

// postpone keeps a settlement back while an extension of the same receipt is on its way:
// an extension that arrives later would undo a return.
func (v *visibility) postpone(o *op) bool {
	if !o.h.extending || o.kind == opDead {
		return false
	}
	o.h.after = o
	return true
}

// errGone is what an entry's failure means when the receipt is no longer good.
var errGone = errors.New("the receipt has expired")

func gone(err error) bool { return errors.Is(err, errGone) }

// leaseHeap orders messages by when visibility has to look at them.
type leaseHeap []*held

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (h *leaseHeap) Push(x any) {
	e, _ := x.(*held)
	*h = append(*h, e)
	e.index = len(*h)
}

// Pop implements heap.Interface.
func (h *leaseHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = 0
	return e
}
