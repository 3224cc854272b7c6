package sqs

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// held is one receipt of a message that a consumer holds. Its identity never changes
// after the receive; the lease belongs to visibility and the verdict to the consumer.
type held struct {
	d        *longshore.Delivery // what the container has
	native   *types.Message      // as it was received; a dead letter is a copy of it
	token    uint64              // names it for its delivery; rises with each receive
	id       string              // message id, the same for every receipt of a message
	group    string              // message group of a FIFO queue
	receives int                 // how often SQS has handed the message out, this time included
	garbled  bool                // the body was changed on its way, so it must not be handled

	receipt string // the newest receipt, by which the message is settled and extended
	lease          // until when it is ours

	handed  bool // Receive has returned it
	settled *op  // the verdict that was accepted, or what followed from it; nil: open
	own     op   // room for the verdict, so that most settlements allocate nothing
}

// phase is how far a message has come.
type phase uint8

const (
	phaseOpen    phase = iota // no verdict yet
	phaseMoving               // rejected: its lease is kept until the copy is in the dead-letter queue
	phaseLeaving              // deleted or returned: its lease is kept no longer
)

// phase is derived from the settlement, so that the two cannot disagree.
func (h *held) phase() phase {
	switch {
	case h.settled == nil:
		return phaseOpen
	case h.settled.kind == opDead:
		return phaseMoving
	}
	return phaseLeaving
}

// lease is visibility's part of a message.
type lease struct {
	since    time.Time     // received; SQS counts its twelve hours from here
	deadline time.Time     // the broker may hand it to someone else from then on
	due      time.Time     // when visibility looks at it next
	asked    time.Duration // the length that the handler asked for; 0: the queue's
	index    int           // place in the heap plus 1; 0: not in it

	extending bool         // a call is on its way
	extended  []chan error // callers of Extend who wait for that call
	more      []chan error // callers who came while it was on its way and wait for the next
	after     *op          // a settlement that waits for that call: arriving first, it would be undone
	alone     bool         // a batch with it was refused as a whole; its next call is for it alone
	capped    bool         // the twelve hours are used up

	of     *held   // the message of which this is another receipt; nil: this is the message
	others []*held // further receipts of this message, oldest first
}

// hideable is how long SQS can still hide a message.
func (l *lease) hideable(now time.Time) time.Duration {
	return max((maxLease - now.Sub(l.since) - 2*time.Second).Truncate(time.Second), 0)
}

// answer ends the wait of Extend's callers. Their channels have room for it.
func (l *lease) answer(err error) {
	for _, done := range l.extended {
		done <- err
	}
	l.extended = nil
}

// askAgain makes Extend's callers wait for the next call.
func (l *lease) askAgain() { l.extended, l.more = nil, append(l.extended, l.more...) }
