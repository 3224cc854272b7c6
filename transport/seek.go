package transport

import "time"

// Position says where to go on reading.
type Position struct {
	// Topic and Partition choose: "" is every topic, −1 every partition of this consumer.
	Topic     string
	Partition int32
	// One of Offset, Start, End and Time: Offset is a record's number, Start the oldest that there is, End
	// behind the newest, Time the first record of then or later.
	Offset     int64
	Start, End bool
	Time       time.Time
}

// Moved is a partition whose position was moved.
type Moved struct {
	Topic     string // of the partition
	Partition int32  // its number
	// From is up to where everything was done, To where it goes on.
	From, To int64
}
