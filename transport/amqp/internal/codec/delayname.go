package codec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A delayed message waits in a queue of its own delay, which dead-letters back into the
// source: per-message TTLs in one queue would let a short delay wait behind a long one.
// The names of those queues are read again in x-death, so they are part of the format.

const (
	// AtOnce is the delay of a counted retry that need not wait.
	AtOnce = time.Millisecond
	// MaxDelay leaves room below the broker's 32 bits of milliseconds.
	MaxDelay = 45 * 24 * time.Hour
)

// RoundDelay rounds up to whole seconds, and above a minute by up to 5 %, so that
// there are few delay queues.
func RoundDelay(d time.Duration) time.Duration {
	up := func(d time.Duration) time.Duration { return (d + time.Second - 1) / time.Second * time.Second }
	if d <= time.Minute {
		return max(up(d), time.Second)
	}
	step := time.Minute
	for step < d {
		step = up(step + step/20)
	}
	return step
}

// DelayQueue names the queue in which messages for another queue wait so long.
func DelayQueue(queue string, d time.Duration) string {
	return fmt.Sprintf("%s%d", DelayStem(queue), d.Milliseconds())
}

// DelayStem begins the names of all delay queues of a queue.
func DelayStem(queue string) string { return "longshore.delay." + queue + "." }

// isDelayQueue reports whether the name is of a delay queue that leads back to the queue.
func isDelayQueue(name, queue string) bool {
	ms, ok := strings.CutPrefix(name, DelayStem(queue))
	n, err := strconv.ParseUint(ms, 10, 63)
	return ok && err == nil && n > 0
}
