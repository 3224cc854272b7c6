package transport

import (
	"context"
	"time"
)

// Optional on a Consumer of a log that is read by position. Operators use them.
type (
	// Partitioner tells how many partitions this consumer has now.
	Partitioner interface{ Partitions() int }

	// Seeker moves the position of this consumer's own partitions.
	//
	// It hands out nothing more of them, calls fenced, so that what no handler has can be
	// given back, and waits until what is out was settled, at most for drain; what is then
	// still out is lost (Delivery.Lose). The new position is committed before the first
	// record from there is handed out. Other partitions go on meanwhile. It returns where
	// each partition goes on; after an error they go on where they were.
	Seeker interface {
		Seek(ctx context.Context, to Position, drain time.Duration, fenced func()) ([]Moved, error)
	}
)

// Position says where to go on reading.
type Position struct {
	// Topic and Partition choose: "" is every topic, −1 every partition of this consumer.
	Topic     string
	Partition int32
	// One of them: Offset is a record's number, Start the oldest that there is, End
	// behind the newest, Time the first record of then or later.
	Offset     int64
	Start, End bool
	Time       time.Time
}

// Moved is a partition whose position was moved.
type Moved struct {
	Topic     string
	Partition int32
	// From is up to where everything was done, To where it goes on.
	From, To int64
}
