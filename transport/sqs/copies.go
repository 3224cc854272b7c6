package sqs

import "time"

// maxCopies bounds the earlier receipts that are remembered for one message; the oldest
// is forgotten. SQS documents that only the newest receipt is sure to work.
const maxCopies = 4

// copies are further receipts of a message that is already held here. A standard queue
// may hand out a message again although its lease is kept. Starting the message a second
// time, or cancelling the handler that works on it, would turn a harmless copy into
// repeated work. The held message goes on with the newest receipt. Each other receipt is
// a held of its own that no handler sees: its lease is extended, in case the broker
// really has two copies, and it is deleted together with the message.
type copies struct {
	of     *held   // the message whose copy this is; nil: this is the message
	others []*held // receipts besides its own, oldest first
}

// adopt takes in a receipt of a message that is held here already and reports whether it
// did. A message whose lease has ended, or that was given back, is not held any more: it
// is handed out again. The caller holds mu.
func (c *consumer) adopt(h *held, now time.Time) bool {
	m := c.byID[h.id]
	switch {
	case m == nil || h.receipt == "":
		return false
	case m.settled == nil && !m.deadline.After(now):
		return false // lost, and about to be told
	case m.settled != nil && m.settled.kind != opDead:
		return false
	}
	h.garbled = false           // only the receipt counts
	if h.receipt == m.receipt { // the answer to a repeated receive: its lease began again
		m.deadline = h.deadline
		c.keep(m)
		return true
	}
	if h.receives >= m.receives {
		c.swapReceipts(m, h)
	}
	h.of = m
	m.others = append(m.others, h)
	c.held[h.token] = h
	c.keep(h)
	if len(m.others) > maxCopies {
		c.forget(m.others[0])
	}
	return true
}

// swapReceipts exchanges the receipts of a message and its copy. The caller holds mu.
func (c *consumer) swapReceipts(m, h *held) {
	m.receipt, h.receipt = h.receipt, m.receipt
	m.receives, h.receives = max(h.receives, m.receives), m.receives
	m.since, h.since = h.since, m.since
	m.deadline, h.deadline = h.deadline, m.deadline
	m.capped = false // twelve hours begin with each receive
	c.keep(m)
}

// survives lets a message whose receipt is no longer good go on with another one. The
// caller holds mu.
func (c *consumer) survives(m *held, now time.Time) bool {
	var best *held
	for _, h := range m.others {
		if h.deadline.After(now) && (best == nil || h.deadline.After(best.deadline)) {
			best = h
		}
	}
	if best == nil {
		return false
	}
	c.swapReceipts(m, best)
	c.forget(best)
	return true
}

// deleteCopies deletes a message by its other receipts too. The caller holds mu.
func (c *consumer) deleteCopies(m *held) {
	for _, h := range m.others {
		h.settled = &op{kind: opDelete, h: h, receipt: h.receipt, quiet: true}
		h.of = nil
		c.unkeep(h)
		c.send(h.settled)
	}
	m.others = nil
}

// forgetCopies leaves other receipts to their end: a return by an old one could take the
// message from whoever has received it since. The caller holds mu.
func (c *consumer) forgetCopies(m *held) {
	for len(m.others) > 0 {
		c.forget(m.others[0])
	}
}
