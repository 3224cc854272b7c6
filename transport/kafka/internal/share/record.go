package share

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Verdict is how a record is acknowledged, with Kafka's number for it.
type Verdict int8

// The verdicts.
const (
	Accept  Verdict = 1 // done
	Release Verdict = 2 // deliver it again, to any member
	Reject  Verdict = 3 // archive it: it is never delivered again
)

// Kafka's other acknowledge types.
const (
	gapType   = 0 // an acquired offset that has no record
	renewType = 4 // make the acquisition lock last from now on (KIP-1222)
)

// Part is a partition of a topic, by the topic's identity.
type Part struct {
	Topic [16]byte // id of the topic, which a topic of the same name made later does not share
	Num   int32    // its number
}

// Record is an acquired record. What is exported never changes after the acquisition; the
// rest belongs to [Leases].
type Record struct {
	*kgo.Record
	Part       Part          // it was read from
	Deliveries int           // how often the broker has delivered it, this time included
	Lock       time.Duration // how long its acquisition lock lasts without a renewal
	Token      uint64        // names it for its settlement; rises with each acquisition
	Of         any           // for Events: what was made of it in Arrived

	session  uint64         // of the session it was acquired in, which its verdict must reach
	deadline time.Time      // when the acquisition lock ends
	state    state          // how far it has come
	renewal  renewal        // whether its lock is being renewed
	verdict  Verdict        // what it is settled with
	waiting  []chan<- error // callers that wait for the next renewal
	asked    []chan<- error // callers that wait for the renewal that is on its way
}

// state is how far an acquired record has come. See transitions for what leads from one to
// the next.
type state uint8

const (
	stateHeld    state = iota // acquired, no verdict yet
	stateSettled              // a verdict was accepted and waits for a request
	stateSending              // a request with the verdict is on its way
	stateDone                 // the broker has confirmed the verdict
	stateLost                 // the broker has it back, or may have: no verdict was accepted before
	stateFailed               // a verdict was accepted, and the broker has not carried it out
	states                    // how many there are
)

// transitions lists the states that may follow each state.
var transitions = [states][]state{ //nolint:gochecknoglobals // a table
	stateHeld:    {stateSettled, stateLost},
	stateSettled: {stateSending, stateFailed},
	stateSending: {stateDone, stateFailed, stateSettled},
}

// renewal is how far the renewal of an acquisition lock has come.
type renewal uint8

const (
	renewalNone   renewal = iota // nothing to do
	renewalWanted                // the next request carries it
	renewalSent                  // a request with it is on its way
)
