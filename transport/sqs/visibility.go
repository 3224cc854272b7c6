package sqs

import (
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// held is a message that this consumer holds: one receipt. The consumer's mu
// guards it.
type held struct {
	d        *longshore.Delivery
	native   *types.Message
	token    uint64
	id       string
	group    string // of a FIFO queue
	receipt  string
	receives int
	handed   bool
	garbled  bool // changed on its way

	since     time.Time     // received
	deadline  time.Time     // ours until then
	due       time.Time     // the loop looks at it then
	asked     time.Duration // an extension that was asked for by hand; 0: the queue's
	index     int           // in the heap, plus 1
	extending bool          // a call is on its way
	extended  []chan error  // who waits for it
	more      []chan error  // and for the one after it: they asked while it was on its way
	alone     bool          // an extension was refused in company; the next goes by itself
	capped    bool          // cannot be extended any further

	copies // receipts of the same message

	settled *op // the verb that was accepted, or what followed from it
	own     op  // the verb
	after   *op // goes when the extension is back
}

// leaseHeap orders what is held by when it has to be looked at.
type leaseHeap []*held

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *leaseHeap) Push(x any) {
	e, _ := x.(*held)
	*h = append(*h, e)
	e.index = len(*h)
}

func (h *leaseHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = 0
	return e
}

// keep puts a message under the keeper's care: it looks again when half of the
// lease is left and a little more. The caller holds mu.
func (c *consumer) keep(h *held) {
	left := time.Until(h.deadline)
	h.due = h.deadline.Add(-left/2 - left/10)
	if h.capped {
		h.due = h.deadline
	}
	c.schedule(h)
}

func (c *consumer) schedule(h *held) {
	if h.index > 0 {
		heap.Fix(&c.leases, h.index-1)
		return
	}
	heap.Push(&c.leases, h)
}

// unkeep takes it out of the keeper's care. The caller holds mu.
func (c *consumer) unkeep(h *held) {
	if h.index > 0 {
		heap.Remove(&c.leases, h.index-1)
	}
}

// forget drops a message that is settled, lost or given back. The caller holds mu.
func (c *consumer) forget(h *held) {
	c.unkeep(h)
	if !h.extending {
		h.extended = append(h.extended, h.more...)
		h.more = nil
		h.answer(errGone)
	}
	delete(c.held, h.token)
	if c.byID[h.id] == h {
		delete(c.byID, h.id)
	}
	c.forgetCopies(h)
	if m := h.of; m != nil {
		h.of = nil
		m.others = slices.DeleteFunc(m.others, func(x *held) bool { return x == h })
	}
}

// lose ends a message's life here: the broker will redeliver it. It adds
// those that somebody has to be told of. On a FIFO queue what is behind it in its
// group goes back, so that the group's order holds. The caller holds mu.
func (c *consumer) lose(h *held, lost []*longshore.Delivery) []*longshore.Delivery {
	if c.survives(h, time.Now()) {
		return lost
	}
	copied := h.of != nil
	if c.forget(h); copied {
		return lost
	}
	if i := slices.Index(c.intake.buffer, h); i >= 0 {
		c.intake.buffer = slices.Delete(c.intake.buffer, i, i+1)
	} else if h.handed && h.settled == nil {
		lost = append(lost, h.d)
	}
	if !c.fifo {
		return lost
	}
	c.releaseBehind(h)
	for _, f := range c.inOrder() {
		if f.token > h.token && f.settled == nil && f.of == nil && f.group == h.group {
			lost = append(lost, f.d)
			c.giveBack(f)
		}
	}
	return lost
}

// releaseBehind gives back what follows a message of a FIFO queue in its group and
// was not handed out. The caller holds mu.
func (c *consumer) releaseBehind(h *held) {
	for _, f := range c.intake.lines.cut(h) {
		c.giveBack(f)
	}
	c.intake.buffer = slices.DeleteFunc(c.intake.buffer, func(f *held) bool {
		behind := f.token > h.token && f.group == h.group
		if behind {
			c.giveBack(f)
		}
		return behind
	})
}

// answer tells who waits for an extension. The caller holds mu.
func (h *held) answer(err error) {
	for _, done := range h.extended {
		done <- err
	}
	h.extended = nil
}

// askAgain lets those who wait for an extension wait for the next one. The caller
// holds mu.
func (h *held) askAgain() { h.extended, h.more = nil, append(h.extended, h.more...) }

// askMore sends the extension that was asked for while another was on its way. The
// caller holds mu.
func (c *consumer) askMore(h *held) {
	if len(h.more) == 0 || h.extending {
		return
	}
	h.extended, h.more = append(h.extended, h.more...), nil
	if c.held[h.token] != h || h.settled != nil {
		h.answer(errGone)
		return
	}
	h.due = time.Now()
	c.schedule(h)
	c.wake()
}

// inOrder lists what is held as it was received. The caller holds mu.
func (c *consumer) inOrder() []*held {
	all := make([]*held, 0, len(c.held))
	for _, h := range c.held {
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

// dueLeases takes what has to be extended now, in batches, and what is lost. The
// caller holds mu.
func (c *consumer) dueLeases(now time.Time) (batches [][]*held, lost []*held) {
	b := &c.batches[opExtend]
	var batch []*held
	full := func() {
		if len(batch) > 0 {
			batches = append(batches, batch)
			b.running++
			batch = nil
		}
	}
	c.late = false
	for len(c.leases) > 0 {
		h := c.leases[0]
		switch {
		case !h.deadline.After(now):
			c.unkeep(h)
			lost = append(lost, h)
			continue
		case h.due.After(now) && (len(batch) == 0 || h.due.After(now.Add(c.lease/10))):
			full()
			return batches, lost
		case h.extending || h.capped: // nothing can be done before its end
			if h.due.Equal(h.deadline) {
				full()
				return batches, lost
			}
			h.due = h.deadline
			c.schedule(h)
			continue
		case b.running >= b.most:
			// Calls are slower than leases run: nothing more comes in, and what ends
			// meanwhile is found by looking at all.
			c.late = now.Sub(h.due) > c.lease/8
			for _, x := range slices.Clone(c.leases) {
				if !x.deadline.After(now) {
					c.unkeep(x)
					lost = append(lost, x)
				}
			}
			return batches, lost
		}
		h.extending, h.due = true, h.deadline
		c.schedule(h)
		if h.alone {
			full()
		}
		batch = append(batch, h)
		if len(batch) == maxBatch || h.alone {
			full()
		}
	}
	full()
	return batches, lost
}

// extension is the new timeout of a message, in whole seconds; 0 if the 12 hours
// are used up. The caller holds mu.
func (c *consumer) extension(h *held, now time.Time) time.Duration {
	v, asked := c.lease, h.asked
	if h.of != nil {
		asked = h.of.asked
	}
	if asked > 0 {
		v = asked
	}
	if left := hideable(h, now); left < v {
		h.capped = true
		return left
	}
	return v
}

// wasExtended takes the outcome of an extension. The caller holds mu; it reports
// whether the message is lost.
func (c *consumer) wasExtended(h *held, receipt string, sent time.Time, v time.Duration, err error) (lost bool) {
	h.extending = false
	if op := h.after; op != nil {
		h.after = nil
		c.enqueue(op)
		return false
	}
	if c.held[h.token] != h || h.settled != nil && h.settled.kind != opDead {
		return false
	}
	if receipt != h.receipt { // this was about a former receipt
		c.keep(h)
		return false
	}
	if err == nil {
		h.deadline = sent.Add(v)
		c.keep(h)
		return false
	}
	if gone(err) {
		return true
	}
	retry := min(max(c.lease/20, 100*time.Millisecond), 2*time.Second)
	h.capped = false
	h.due = time.Now().Add(retry)
	if h.due.After(h.deadline) {
		h.due = h.deadline
	}
	c.schedule(h)
	return false
}

// errGone is what an entry's failure means when the receipt is no longer good.
var errGone = errors.New("the receipt is no longer valid")

func gone(err error) bool { return errors.Is(err, errGone) }

// leaseLost is the cause of a loss.
func (c *consumer) leaseLost(ds []*longshore.Delivery, why string) error {
	what := fmt.Sprintf("%d messages", len(ds))
	if len(ds) == 1 {
		if m, ok := ds[0].Native().(*types.Message); ok && m.MessageId != nil {
			what = "message " + *m.MessageId
		}
	}
	return &longshore.Error{Code: longshore.CodeLeaseLost, Source: c.src.ref.name,
		Op:   fmt.Sprintf("%s: the lease of %s could not be kept (%s); its context was cancelled and nothing was settled", c.src.title(), what, why),
		Hint: "split the work or settle earlier", Err: longshore.ErrLost}
}
