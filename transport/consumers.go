package transport

import (
	"slices"
	"strings"
	"time"
)

// ConsumerList is who consumes from a source, by the broker's account.
type ConsumerList struct {
	At        time.Time        // when the broker was asked
	Consumers []ListedConsumer // this process and all others
	// Total is how many there are; the list may have fewer.
	Total int
	// Delivered is how many messages the broker has handed to all of them, ever; -1: it does
	// not count them. What one process received in a time, by this, is its share of them.
	Delivered int64
	// Partitions is how many partitions they share; 0: the source has none.
	Partitions int
}

// ListedConsumer is one of a [ConsumerList]. What the broker does not say is empty.
type ListedConsumer struct {
	ID      string // the consumer tag, or the member's id
	Host    string // that it connects from
	Client  string // what it calls itself: the connection's name, or the client id
	Product string // program or library, with its version
	// Prefetch is how much the broker sends it ahead; 0: without a limit, or the broker has
	// no such thing.
	Prefetch int
	// Standby: the broker gives it nothing while another one is the active one.
	Standby bool
	// Partitions is how many it has; -1: the source has none.
	Partitions int
	// Own: it is the consumer that was asked.
	Own bool
}

// Marked returns the list with those marked as own that the broker lists under a tag, which
// are TAG, TAG.2 and so on. Without a tag it is as it was.
func (l ConsumerList) Marked(tag string) ConsumerList {
	if tag == "" {
		return l
	}
	l.Consumers = slices.Clone(l.Consumers)
	for i := range l.Consumers {
		rest, ok := strings.CutPrefix(l.Consumers[i].ID, tag)
		number, dotted := strings.CutPrefix(rest, ".")
		if ok && (rest == "" || dotted && strings.Trim(number, "0123456789") == "") {
			l.Consumers[i].Own = true
		}
	}
	return l
}
