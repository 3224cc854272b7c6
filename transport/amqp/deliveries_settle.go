package amqp

import (
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// This file has what handlers and the end of the consumer do to the deliveries, and what
// the settle writer takes from them.

// open returns the delivery of a tag that can be settled. The caller holds mu.
func (h *deliveries) open(tag uint64) (*longshore.Delivery, error) {
	if h.state.ended() {
		return nil, longshore.ErrLost
	}
	d, state := h.ring.Find(tag)
	if state != tags.Open {
		return nil, longshore.ErrSettled
	}
	return d, nil
}

// settle accepts an ack or a rejection.
func (h *deliveries) settle(tag uint64, v longshore.Settlement, how tags.How) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, err := h.open(tag)
	if err != nil {
		return err
	}
	h.accept(tag, d, v, how)
	return nil
}

// giveBack accepts a return. Where a copy has to take the message's place it returns the
// original and the attempt of the copy, and the caller ends the return with copied.
func (h *deliveries) giveBack(tag uint64, v longshore.Settlement) (original *longshore.Delivery, attempt int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, err := h.open(tag)
	if err != nil {
		return nil, 0, err
	}
	if v.Attempt <= 0 {
		v.Attempt = d.Attempt + 1
	}
	switch h.rules.way(returning{delayed: v.Delay > 0, stream: h.streams.is(), exhausted: h.limits.exhausted(d), keeps: h.keeps(), leaving: h.state.leaving(),
		shows: h.rules.shows(d, v.Attempt)}) {
	case returnByRereading:
		h.ring.Keep(tag)
		if !h.state.leaving() {
			h.endFor(errReread)
		}
	case returnByClosing:
		h.ring.Keep(tag)
	case returnByNack:
		h.accept(tag, d, v, tags.Nack)
	case returnByCopy:
		h.ring.Copy(tag)
		return d, v.Attempt, nil
	}
	return nil, 0, nil
}

// copied settles the original after its copy was confirmed, or opens it again.
func (h *deliveries) copied(tag uint64, v longshore.Settlement, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return longshore.ErrLost
	}
	d, state := h.ring.Find(tag)
	if state == tags.Absent {
		return longshore.ErrLost
	}
	if err != nil {
		h.ring.Reopen(tag)
		return err
	}
	h.accept(tag, d, v, tags.Ack)
	return nil
}

// accept notes a settlement and wakes the settle writer. The caller holds mu.
func (h *deliveries) accept(tag uint64, d *longshore.Delivery, v longshore.Settlement, how tags.How) {
	if h.cfg.AutoAck { // the broker forgot it when it sent it
		h.ring.Forget(tag)
		return
	}
	h.streams.settle(d)
	first, window := h.ring.Unsent() == 0, h.window
	if window == 0 { // unlimited
		window = maxUnconfirmed
	}
	h.ring.Accept(tag, v, how)
	if how != tags.Ack || 2*h.ring.Unsent() >= window {
		h.urgent = true
		signal(h.wake)
	} else if first {
		signal(h.wake)
	}
}

// keeps reports whether what is given back waits for the channel's end, to keep its place
// in the queue. The caller holds mu.
func (h *deliveries) keeps() bool { return h.rules.byClosing || h.state.intake == intakeIgnoring }

// takeUrgent reports whether the settle writer must not wait for more.
func (h *deliveries) takeUrgent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.urgent
	h.urgent = false
	return u
}

// collect moves what may be written into b; more is left for the next pass.
func (h *deliveries) collect(b *tags.Batch, all bool) (more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.state.writable() {
		*b = tags.Batch{}
		return false
	}
	h.ring.Collect(b, all, h.state.holdsReturns())
	return h.ring.Unsent() > 0
}

// unconfirmed is the number of settlements that were written and not confirmed.
func (h *deliveries) unconfirmed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ring.Unconfirmed()
}

// confirm notes that the broker has read everything that was written.
func (h *deliveries) confirm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring.Confirm()
}

// leave notes that the consumer is on its way out. It returns whether nothing is left to
// cancel, and the error of one that has ended.
func (h *deliveries) leave() (done bool, end error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.leave()
	return h.state.intake >= intakeCanceled, h.state.err
}

// cancel notes how the cancel of all consumers went. Where they are still there nothing
// may go back before the channel ends: it would come here again.
func (h *deliveries) cancel(gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.cancel(gone)
	if !gone {
		h.ring.KeepReturned()
	}
	signal(h.ready)
}

// canceled reports whether the consumers were cancelled, or could not be.
func (h *deliveries) canceled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.intake >= intakeCanceled
}

// stopWriting lets nothing more be written: on a channel whose consumer was taken away a
// late ack does harm until the channel closes.
func (h *deliveries) stopWriting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.written = true
}

// releaseBuffered gives back what was not handed out. What the broker has forgotten (again)
// and what it would give up (renewed) needs a copy, which the caller makes.
func (h *deliveries) releaseBuffered() (again, renewed []*longshore.Delivery, end error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return nil, nil, h.state.err
	}
	h.ring.Drain(func(tag uint64, d *longshore.Delivery) {
		switch {
		case h.cfg.AutoAck:
			again = append(again, d)
		case h.limits.exhausted(d):
			h.ring.Copy(tag)
			renewed = append(renewed, d)
		case h.keeps():
			h.ring.Keep(tag)
		default:
			h.ring.Accept(tag, longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}, tags.Nack)
			h.ring.Disown(tag)
		}
	})
	return again, renewed, nil
}

// goesBack returns a buffered delivery of which no copy could be made.
func (h *deliveries) goesBack(tag uint64, v longshore.Settlement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, state := h.ring.Find(tag); h.state.ended() || state != tags.Copying {
		return
	}
	if h.keeps() {
		h.ring.Keep(tag)
		return
	}
	h.ring.Accept(tag, v, tags.Nack)
	h.ring.Disown(tag)
}

// lastWrites is the remaining output when a consumer closes.
type lastWrites struct {
	highest uint64 // the highest tag that is still open; 0: none
	keeps   bool   // the open tags go back with the channel, to keep their place
}

// finish takes what is to be written at last. With together, everything else goes back
// with the channel. ok is false if the channel is gone.
func (h *deliveries) finish(together bool, b *tags.Batch) (last lastWrites, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return last, false
	}
	if together || h.state.intake == intakeIgnoring { // in the order in which it came
		h.ring.KeepReturned()
	}
	h.state.cancel(!together)
	h.state.written = true
	h.ring.Collect(b, true, false)
	return lastWrites{highest: h.ring.Highest(), keeps: h.keeps()}, true
}

// end makes err what Receive returns and gives up all deliveries. It does nothing the
// second time.
func (h *deliveries) end(err error) (ended tags.Ended, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return ended, false
	}
	h.state.err = err
	h.streams.leave()
	close(h.gone)
	ended = h.ring.End()
	h.failed += len(ended.Unsent) + len(ended.Unconfirmed)
	return ended, true
}

// close makes ErrClosed what Receive returns, whatever ended the channel.
func (h *deliveries) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.err = longshore.ErrClosed
}

// takeFailed returns how many settlements were lost since the last call, and the error of
// a channel that is gone.
func (h *deliveries) takeFailed() (failed int, end error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	failed, h.failed = h.failed, 0
	return failed, h.state.err
}

// endFor ends the consumer because of a delivery: its channel closes, and the container
// opens the source again.
func (h *deliveries) endFor(reason error) {
	select {
	case h.ends <- reason:
	default: // it ends already
	}
}
