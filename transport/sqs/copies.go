package sqs

import "time"

// maxCopies bounds the further receipts that are remembered for one message; the oldest is
// forgotten. SQS documents that only the newest receipt is sure to work.
const maxCopies = 4

// A standard queue may hand out a message again although its lease is kept. Starting the
// message a second time, or cancelling the handler that works on it, would turn a harmless
// copy into repeated work. The held message goes on with the newest receipt. Each other
// receipt is a held of its own that no handler sees: its lease is extended, in case the
// broker really has two copies, and it is deleted together with the message.

// adopt takes in a receipt of a message that is held already and reports whether it did.
// A message whose lease has ended, or that was returned, is not held any more: it is
// handed out again.
func (v *visibility) adopt(h *held, now time.Time) bool {
	m := v.byID[h.id]
	switch {
	case m == nil || h.receipt == "":
		return false
	case m.phase() == phaseOpen && !m.deadline.After(now):
		return false // about to be reported lost
	case m.phase() == phaseLeaving:
		return false
	}
	h.garbled = false           // only the receipt counts
	if h.receipt == m.receipt { // the answer to a repeated receive: its lease began again
		m.deadline = h.deadline
		v.keep(m, now)
		return true
	}
	if h.receives >= m.receives {
		v.swapReceipts(m, h, now)
	}
	h.of = m
	m.others = append(m.others, h)
	v.byToken[h.token] = h
	v.keep(h, now)
	if len(m.others) > maxCopies {
		v.forget(m.others[0])
	}
	return true
}

// swapReceipts exchanges the receipts of a message and its copy.
func (v *visibility) swapReceipts(m, h *held, now time.Time) {
	m.receipt, h.receipt = h.receipt, m.receipt
	m.receives, h.receives = max(h.receives, m.receives), m.receives
	m.since, h.since = h.since, m.since
	m.deadline, h.deadline = h.deadline, m.deadline
	m.capped = false // twelve hours begin with each receive
	v.keep(m, now)
}

// survives lets a message whose receipt is no longer good go on with another one.
func (v *visibility) survives(m *held, now time.Time) bool {
	var best *held
	for _, h := range m.others {
		if h.deadline.After(now) && (best == nil || h.deadline.After(best.deadline)) {
			best = h
		}
	}
	if best == nil {
		return false
	}
	v.swapReceipts(m, best, now)
	v.forget(best)
	return true
}

// takeCopies separates a message from its other receipts, for the caller to delete them.
func (v *visibility) takeCopies(m *held) []*held {
	copies := m.others
	m.others = nil
	for _, h := range copies {
		h.of = nil
		v.unkeep(h)
	}
	return copies
}

// forgetCopies leaves other receipts to their end: a return by an old one could take the
// message from whoever has received it since.
func (v *visibility) forgetCopies(m *held) {
	for len(m.others) > 0 {
		v.forget(m.others[0])
	}
}
