package amqp

import (
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// returnWay is how a message goes back to its queue.
type returnWay uint8

const (
	returnByNack      returnWay = iota // basic.nack with requeue
	returnByCopy                       // a copy takes its place, and the original is acked
	returnByClosing                    // it stays unsettled until the channel closes, and keeps its place
	returnByRereading                  // of a stream: the source is opened again at its offset
)

// returnRules is what of a consumer decides how its messages go back. It never changes.
type returnRules struct {
	title     string // of the source, for people
	ordered   bool   // at the end the place in the queue counts more than the attempt
	byClosing bool   // basic.nack would put a message behind others of its key
	autoAck   bool   // the broker forgot the message when it sent it
	refuses   bool   // a copy would be refused or dropped when the queue is full
}

// returning is what of one return decides.
type returning struct {
	delayed   bool // it is to come back later
	stream    bool // it came from a stream
	exhausted bool // the broker would give it up
	keeps     bool // returns wait for the channel's end
	leaving   bool // the consumer is on its way out
	shows     bool // the broker would show the attempt that is asked for
}

// way chooses how a message goes back.
func (r *returnRules) way(x returning) returnWay {
	switch {
	case x.delayed:
		return returnByCopy
	case x.stream:
		return returnByRereading
	case x.exhausted:
		return returnByCopy
	case x.keeps && x.leaving:
		return returnByClosing
	case x.shows || r.ordered && x.leaving:
		return returnByNack
	}
	return returnByCopy
}

// shows reports whether a message that the broker gives back as it is comes with this
// attempt: it keeps its headers, and with them the attempt that it came with.
func (r *returnRules) shows(d *longshore.Delivery, attempt int) bool {
	return !r.autoAck && (r.refuses || attempt <= codec.Attempt(nativeOf(d), d.Origin.Topic))
}
