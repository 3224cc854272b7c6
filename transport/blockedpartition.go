package transport

import "time"

// BlockedPartition is the oldest message of a log's partition that is not done, where it has
// been that for a while and others are behind it. What is committed cannot pass it,
// and when the window is full nothing more of the partition is handed out.
type BlockedPartition struct {
	Topic     string    // of the partition
	Partition int32     // that is blocked
	Position  uint64    // of the message
	Key       []byte    // of the message, which is how people find it
	Since     time.Time // when it became the oldest
	Behind    int       // behind it, in work or done
	Window    int       // how many there may be, it included
	Cause     string    // why nothing behind it is received, where it is no message in hand; "" otherwise
	Do        string    // what ends Cause
}

// Full reports whether its partition stands still.
func (h BlockedPartition) Full() bool { return h.Behind+1 >= h.Window }
