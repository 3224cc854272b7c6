package sqs

import (
	"context"
	"strconv"
	"sync"
	"time"
)

const (
	// leastLimit is the smallest MaximumMessageSize that SQS lets a queue have: what is
	// no larger fits everywhere, and nothing is asked for it.
	leastLimit = 1 << 10
	// limitAge is how long a limit counts for messages that are above it. It may have been
	// raised meanwhile.
	limitAge = time.Minute
)

// sizeLimit is what a queue takes in one message, attributes included: its own
// MaximumMessageSize, which is read when the first message needs it.
type sizeLimit struct {
	mu    sync.Mutex // one asks, the others wait for the answer
	bytes int        // 0: not read
	at    time.Time  // when it was read: the queue can be changed
}

// of returns the limit for a message of a size. Where the attribute may not be read it is
// what SQS takes at most, and SQS itself refuses what is above the queue's.
func (s *sizeLimit) of(ctx context.Context, l *queueHandle, size int) int {
	if size <= leastLimit {
		return leastLimit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes >= size || s.bytes > 0 && time.Since(s.at) < limitAge {
		return s.bytes
	}
	s.bytes, s.at = maxMessageBytes, time.Now()
	if attrs, err := l.attributes(ctx, l.url, "MaximumMessageSize"); err == nil {
		if n, err := strconv.Atoi(attrs["MaximumMessageSize"]); err == nil && n > 0 {
			s.bytes = min(n, maxMessageBytes)
		}
	}
	return s.bytes
}
